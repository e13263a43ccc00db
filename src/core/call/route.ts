import { comparePrice } from '../../catalog/cheapest.ts';
import { ApiError } from '../../domain/errors.ts';
import type { RoutingAttempt } from '../../generated/types.ts';
import { TransportError } from '../../net/transport-error.ts';
import { fromTransportError, UpstreamError } from '../../providers/wire/upstream-error.ts';
import type { Store } from '../../store/store.ts';
import type { AttemptFailure, Telemetry } from '../../telemetry.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import type { FindReach, Reach } from '../models/reach.ts';
import type { Target } from '../models/target.ts';
import { type Charge, costOf } from '../price/meter.ts';
import { amountOf, type Call } from './call.ts';
import type { Health } from './health.ts';

/** Most attempts for one call, the first included (src/core/README.md, "failover"). */
const MAX_ATTEMPTS = 3;

export interface Routed<T> {
  readonly value: T;
  readonly target: Target;
  /** Every attempt in order; the last one succeeded. */
  readonly attempts: readonly RoutingAttempt[];
  /** Of the attempts that failed, where they are paid for. */
  readonly charges: readonly Charge[];
}

/** A call that no attempt served: its cause is why, and it says what was tried. */
export class RouteFailure extends Error {
  readonly attempts: readonly RoutingAttempt[];
  readonly charges: readonly Charge[];
  /** Of the last attempt; undefined: nothing was sent to any provider. */
  readonly target: Target | undefined;

  constructor(
    cause: unknown,
    attempts: readonly RoutingAttempt[],
    charges: readonly Charge[],
    target: Target | undefined,
  ) {
    super('No attempt served the call.', { cause });
    this.attempts = attempts;
    this.charges = charges;
    this.target = target;
  }
}

export interface RouteDeps {
  readonly store: Store;
  readonly findReach: FindReach;
  readonly health: Health;
  readonly telemetry: Telemetry;
  /** Milliseconds for a call as a whole, failover included. */
  readonly totalTimeoutMs: number;
}

export interface RouteOptions {
  /** Of a stream the end is told by `streamEnded` or `streamBroke`: that it has begun is no success yet. Default: whole. */
  readonly kind?: 'whole' | 'stream';
  /** Whether the caller has seen a part of an answer: then no other attempt may follow. Default: never. */
  readonly isShown?: () => boolean;
  /** Fields of the request that a target would leave out: those that honour all of it go first. Default: none. */
  readonly dropped?: (target: Target) => readonly string[];
}

/**
 * One exchange with a target, in at most `remainingMs`; for a stream they bound the whole of it.
 * @throws TransportError, UpstreamError
 */
export type Attempt<T> = (target: Target, remainingMs: number) => Promise<T>;

const NO_RETRY = { 'x-should-retry': 'false' };

/** Seconds, as the header has them. */
const retryAfter = (milliseconds: number | undefined): Record<string, string> => ({
  'retry-after': String(Math.max(1, Math.ceil((milliseconds ?? 0) / 1000))),
});

/**
 * What a caller is told when the last attempt has failed (src/core/README.md, "the last failure").
 * @param attempt its record, if it was made
 * @param retryAfterMs the shortest wait that a provider asked for
 */
export function failureAnswer(
  error: UpstreamError,
  attempt?: RoutingAttempt,
  retryAfterMs = error.retryAfterMs,
): ApiError {
  if (error.status === 402 && attempt?.credentialSource === 'byok') {
    return new ApiError(402, 'billing_error', error.message, { cause: error });
  }
  if (error.errorType === 'rejected') {
    const { code = 'invalid_request', param = null } = error;
    return new ApiError(400, code, error.message, { cause: error, param });
  }
  const again = { cause: error, headers: retryAfter(retryAfterMs) };
  if (error.errorType === 'rate_limited') return new ApiError(429, 'upstream_rate_limited', error.message, again);
  if (error.status === 503 || error.status === 529) {
    return new ApiError(503, 'upstream_overloaded', error.message, again);
  }
  const [status, code] = error.errorType === 'timeout' ? [504, 'upstream_timeout'] : [502, 'upstream_error'];
  return new ApiError(status, code, error.message, { cause: error, headers: NO_RETRY });
}

/** Anything an attempt throws, as a failed attempt; what is neither the network's nor the provider's doing is a bug and passes. */
export function toUpstreamError(error: unknown): UpstreamError {
  if (error instanceof UpstreamError) return error;
  if (error instanceof TransportError) return fromTransportError(error);
  throw error;
}

function attemptRecord(target: Target, callId: string, error: UpstreamError | undefined): RoutingAttempt {
  const { mapping, credential } = target;
  const status = error === undefined ? 200 : error.status;
  return {
    provider: mapping.providerId,
    model: mapping.modelId,
    region: mapping.region ?? 'global',
    ...(status === undefined ? {} : { status_code: status }),
    error_type: error?.errorType ?? 'none',
    succeeded: error === undefined,
    ...(credential.apiKeyHash === undefined ? {} : { apiKeyHash: credential.apiKeyHash }),
    credentialSource: credential.source,
    ...(credential.providerKeyId === undefined ? {} : { providerKeyId: credential.providerKeyId }),
    ...(credential.providerKeyLabel === undefined ? {} : { providerKeyLabel: credential.providerKeyLabel }),
    logId: callId,
  };
}

/** The same way to the same provider, as far as it still exists: keys are withdrawn and providers removed while a call runs. */
const current = (reach: Reach, { mapping, credential }: Target): Target | undefined =>
  reach.targets(mapping).find((each) => each.credential.providerKeyId === credential.providerKeyId);

/** What is left to try after a failure. Another provider is likelier to help than this one with another key, unless the key failed. */
function afterFailure(rest: readonly Target[], { mapping }: Target, { errorType }: UpstreamError): Target[] {
  if (errorType === 'credential' || errorType === 'rate_limited') return [...rest];
  const isSame = (target: Target): boolean => target.mapping.id === mapping.id;
  return [...rest.filter((target) => !isSame(target)), ...rest.filter(isSame)];
}

/**
 * Tries the permitted candidates until one attempt succeeds: those that honour the whole request first, then the cheapest,
 * each with the customer's keys in their order and then the service's. What failed recently goes last. Only what `Permitted`
 * holds is ever called, and each attempt checks it again.
 * @throws RouteFailure, whatever happened
 */
export async function route<T>(
  deps: RouteDeps,
  call: Call,
  principal: Principal,
  context: CallContext,
  attempt: Attempt<T>,
  { kind = 'whole', isShown, dropped }: RouteOptions = {},
): Promise<Routed<T>> {
  const { findReach, health } = deps;
  const { permitted, opened } = call;
  const attempts: RoutingAttempt[] = [];
  const charges: Charge[] = [];
  const deadline = performance.now() + deps.totalTimeoutMs;
  const most = context.noFallback ? 1 : MAX_ATTEMPTS;
  let last: UpstreamError | undefined;
  let retryAfterMs: number | undefined;
  let tried: Target | undefined;
  try {
    const { candidates } = permitted;
    const cheapestFirst = candidates.length === 1 ? candidates : candidates.toSorted(comparePrice);
    // The first attempt follows at once on the opening of the call, which read what it goes by; later ones read it again.
    let reach = await findReach(principal, opened.providers);
    let plan = health.ordered(
      honouringFirst(
        cheapestFirst.flatMap((mapping) => reach.targets(mapping)),
        dropped,
      ),
    );
    for (let next = plan.shift(); next !== undefined && attempts.length < most; next = plan.shift()) {
      if (attempts.length > 0) reach = await findReach(principal);
      const target = current(reach, next);
      if (target === undefined) continue;
      if (attempts.length > 0 && !(await mayContinue(deps, call, charges))) break;
      await permitted.assertHolds(target.mapping, attempts.length === 0 ? opened.ruleRevision : undefined);
      const remainingMs = Math.ceil(deadline - performance.now());
      if (remainingMs <= 0) break;
      tried = target;
      const result = await tryTarget(deps, call, target, context, kind, () => attempt(target, remainingMs));
      attempts.push(attemptRecord(target, call.id, result.error));
      if (result.error === undefined) return { value: result.value, target, attempts, charges };
      last = result.error;
      const charge = await chargeOf(call, target, last, isShown?.() === true);
      if (charge !== undefined) charges.push(charge);
      retryAfterMs = shorter(retryAfterMs, last.retryAfterMs);
      if (!last.retryable || context.signal.aborted || isShown?.() === true) break;
      plan = afterFailure(plan, target, last);
    }
    throw failureAnswer(
      last ?? new UpstreamError('connection', 'No provider is left to serve the call.'),
      attempts.at(-1),
      retryAfterMs,
    );
  } catch (error) {
    throw new RouteFailure(error, attempts, charges, tried);
  }
}

/** The failed exchange behind an error, if there is one. */
const transportErrorOf = (error: unknown): TransportError | undefined => {
  if (error instanceof TransportError) return error;
  return error instanceof Error ? transportErrorOf(error.cause) : undefined;
};

/**
 * True where we ended the attempt while the provider had the request: our caller left, a timeout of ours passed, or the answer was
 * too large. The provider has read the prompt by then, and charges for it.
 */
export const endedByUs = (error: unknown): boolean => transportErrorOf(error)?.sent === true;

/**
 * What a failed attempt is charged for: what the provider reported, and where we ended it, the prompt by an estimate
 * (src/core/README.md, "cancel"); undefined: nothing. A whole answer that a bound of ours refused has been produced as well,
 * at a price that we do not know; so has what was shown in part.
 */
async function chargeOf(
  call: Call,
  { mapping }: Target,
  error: UpstreamError,
  wasShown: boolean,
): Promise<Charge | undefined> {
  if (error.usage !== undefined) return { usage: error.usage, cost: costOf(error.usage, mapping) };
  if (!endedByUs(error)) return undefined;
  const usage = await call.promptUsage(mapping);
  const cost = costOf(usage, mapping);
  const wasProduced = wasShown || transportErrorOf(error)?.kind === 'too_large';
  return { usage, cost: wasProduced ? { ...cost, unknownPrice: true } : cost };
}

/**
 * Whether another attempt may follow: what was reserved is there for one, so what the failed ones cost is held back in addition.
 * @throws ApiError 401 for a key that may not be used any more, StoreUnavailable
 */
function mayContinue({ store }: RouteDeps, { opened }: Call, charges: readonly Charge[]): Promise<boolean> {
  const { reservation } = opened;
  const charged = charges.reduce((sum, { cost }) => sum + amountOf(cost, reservation), 0n);
  return store.continueCall(opened, charged);
}

function honouringFirst(targets: readonly Target[], dropped: RouteOptions['dropped']): readonly Target[] {
  if (targets.length < 2 || dropped === undefined) return targets;
  const { whole = [], part = [] } = Object.groupBy(targets, (target) =>
    dropped(target).length === 0 ? 'whole' : 'part',
  );
  return [...whole, ...part];
}

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

type Tried<T> = { readonly value: T; readonly error?: undefined } | { readonly error: UpstreamError };

/** For the log: our words and the system's (`ECONNREFUSED`, a certificate), apart from what the upstream said. */
function failureOf(error: UpstreamError): AttemptFailure {
  const { errorType, summary, status, message } = error;
  let innermost: unknown = error;
  while (innermost instanceof Error && innermost.cause instanceof Error) innermost = innermost.cause;
  const system = innermost === error || !(innermost instanceof Error) ? [] : [innermost.message];
  const facts = [...(status === undefined ? [] : [`status ${status}`]), ...system];
  return { errorType, detail: facts.length === 0 ? summary : `${summary} (${facts.join(', ')})`, said: message };
}

/** One attempt, with its bearing on the target's health. */
async function tryTarget<T>(
  { health, telemetry }: RouteDeps,
  { id }: Call,
  target: Target,
  { signal }: CallContext,
  kind: 'whole' | 'stream',
  attempt: () => Promise<T>,
): Promise<Tried<T>> {
  const isProbe = health.begun(target);
  let outcome: 'succeeded' | 'failed' | undefined;
  let restMs: number | undefined;
  try {
    const value = await attempt();
    if (kind === 'whole') {
      outcome = 'succeeded';
      telemetry.attemptSucceeded(target.mapping);
    }
    return { value };
  } catch (thrown) {
    const error = toUpstreamError(thrown);
    if (signal.aborted) return { error };
    if (error.errorType !== 'rejected' && !cutByUs(error)) outcome = 'failed';
    restMs = error.retryAfterMs;
    telemetry.attemptFailed(id, target.mapping, failureOf(error));
    return { error };
  } finally {
    health.ended(target, isProbe, outcome, restMs);
  }
}

/** A stream has come to its end: only now its attempt has succeeded. */
export function streamEnded({ health, telemetry }: RouteDeps, { target }: Routed<unknown>): void {
  health.ended(target, false, 'succeeded');
  telemetry.attemptSucceeded(target.mapping);
}

/** True where a bound of ours cut the answer off: that says nothing about the provider, and what came was produced. */
const cutByUs = ({ cause }: UpstreamError): boolean =>
  cause instanceof TransportError && (cause.phase === 'total' || cause.kind === 'too_large');

/** A stream has broken after it had begun. Returns the attempts as they are told of then: the last one failed. */
export function streamBroke(
  { health, telemetry }: RouteDeps,
  { id }: Call,
  { target, attempts }: Routed<unknown>,
  error: UpstreamError,
): RoutingAttempt[] {
  if (!cutByUs(error)) health.ended(target, false, 'failed', error.retryAfterMs);
  telemetry.attemptFailed(id, target.mapping, failureOf(error));
  return [...attempts.slice(0, -1), attemptRecord(target, id, error)];
}
