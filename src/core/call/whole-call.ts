import type { Mapping } from '../../domain/model.ts';
import type { Usage } from '../../domain/usage.ts';
import type { Transport } from '../../net/transport.ts';
import type { Store } from '../../store/store.ts';
import { type Authorize, Denial, type Permitted } from '../access/authorize.ts';
import type { Target } from '../models/target.ts';
import { type Cost, costOf, withCharges } from '../price/meter.ts';
import type { Answers } from './answers.ts';
import { type Call, type CallFacts, recordDenial, settleCall } from './call.ts';
import { type ExchangeLimits, limitsOf } from './exchange.ts';
import { type RouteDeps, type Routed, type RouteOptions, route } from './route.ts';
import { settleFailure } from './settle-failure.ts';

export interface WholeCallDeps extends RouteDeps {
  readonly transport: Transport;
  readonly answers: Answers;
}

/** Asks the policy. A denial is answered when its row is committed. @throws ApiError 403, PolicyFailure */
export async function permit(
  { authorize, store }: { readonly authorize: Authorize; readonly store: Store },
  facts: CallFacts,
  candidates: readonly Mapping[],
): Promise<Permitted> {
  const { principal, context, action } = facts;
  try {
    return await authorize({ principal, context, action, candidates });
  } catch (error) {
    if (!(error instanceof Denial)) throw error;
    await recordDenial(store, facts, error);
    throw error.answer();
  }
}

/** A call whose answer came whole, and succeeded. */
export interface Served<T> extends Routed<T> {
  /** Of the attempt that served it. */
  readonly usage: Usage;
  /** Of the whole call. */
  readonly cost: Cost;
}

/**
 * Routes an opened call to an answer that comes whole, and settles it; resolves when the settlement is committed. A call that
 * fails is settled too, at what its attempts are charged for.
 * @throws ApiError, PolicyFailure or StoreUnavailable
 */
export async function serveWhole<T>(
  deps: WholeCallDeps,
  call: Call,
  facts: CallFacts,
  attempt: (target: Target, limits: ExchangeLimits) => Promise<T>,
  usageOf: (value: T, target: Target) => Usage | Promise<Usage>,
  options?: RouteOptions,
): Promise<Served<T>> {
  const { principal, context } = facts;
  let routed: Routed<T>;
  let usage: Usage;
  try {
    routed = await route(
      deps,
      call,
      principal,
      context,
      (target, totalTimeoutMs) => attempt(target, limitsOf(facts, totalTimeoutMs)),
      options,
    );
    usage = await usageOf(routed.value, routed.target);
  } catch (error) {
    throw await settleFailure(deps.store, call, context, error);
  }
  const { target, attempts, charges } = routed;
  const cost = costOf(usage, target.mapping);
  await settleCall(deps.store, call, { statusCode: 200, errorCode: null, target, attempts, usage, cost, charges });
  return { ...routed, usage, cost: withCharges(cost, charges) };
}
