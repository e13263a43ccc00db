import { ApiError } from '../domain/errors.ts';
import { idLike } from '../domain/id.ts';
import { comparePrice, type Mapping } from '../domain/model.ts';
import type { Usage } from '../domain/usage.ts';
import type { PolicyFacts, RoutingAttempt } from '../generated/types.ts';
import { causeOf, UpstreamError } from '../providers/wire/upstream-error.ts';
import type { FinishedCall, NewCall } from '../store/ledger/ledger.ts';
import { authorize, type Decision, Denial, decisionRecord, type Permitted, type Principal } from './authorize.ts';
import {
  Call,
  type CallFacts,
  type CallTimes,
  charged,
  type Opening,
  type RequestContent,
  type RequestFacts,
  requestFacts,
  timesOf,
} from './call.ts';
import type { CoreContext } from './core-context.ts';
import type { Charge, Cost } from './cost.ts';
import type { Demand } from './operations.ts';
import { inOrder, type Reach, type Target } from './reach.ts';
import {
  cutByUs,
  type ExchangeLimits,
  endedByUs,
  failureAnswer,
  isTooLarge,
  loggedFailure,
  toUpstreamError,
} from './target-exchange.ts';
import { CallBounds } from './worst-case.ts';

/** The row of a new call with its decision, whose id the caller's log learns at once. */
function newCall({ principal, context, action, requestedModel, stream }: CallFacts, decision: Decision): NewCall {
  const id = idLike(decision.id, 'call');
  context.onCall(id);
  return {
    id,
    organizationId: principal.organizationId,
    projectId: principal.projectId,
    keyId: principal.keyId,
    memberId: principal.memberId,
    action,
    requestId: context.requestId,
    clientRequestId: context.clientRequestId ?? null,
    clientAddress: context.clientIp,
    tool: context.tool ?? null,
    requestedModel,
    stream,
  };
}

/** Asks the policy. A denial is answered when its row is committed. @throws ApiError 403, PolicyFailure, StoreUnavailable */
export async function permit(
  app: CoreContext,
  facts: CallFacts,
  candidates: readonly Mapping[],
  findAsked: () => RequestContent,
): Promise<Permitted> {
  const { principal, context, action } = facts;
  let found: RequestFacts | undefined;
  const findFacts = ({ keyTags }: Principal): PolicyFacts => {
    found ??= requestFacts(app.clock.now(), facts, findAsked(), candidates);
    return { ...found, key_tags: [...keyTags] };
  };
  try {
    return await authorize(app, { principal, context, action, candidates, findFacts });
  } catch (error) {
    if (!(error instanceof Denial)) throw error;
    const answer = error.answer();
    await recordFinished(app, facts, error, undefined, {
      state: 'denied',
      cached: false,
      statusCode: answer.status,
      errorCode: answer.code,
    });
    throw answer;
  }
}

/** Writes the finished row of a call that the cache answers; resolves with its id when it is committed. */
export function recordCacheHit(
  app: CoreContext,
  facts: CallFacts,
  { decision }: Permitted,
  mapping: Mapping,
): Promise<string> {
  const ended = { state: 'settled', cached: true, statusCode: 200, errorCode: null } as const;
  return recordFinished(app, facts, { decision }, mapping, ended);
}

async function recordFinished(
  { store, telemetry }: CoreContext,
  facts: CallFacts,
  { decision, reason }: Pick<Denial, 'decision'> & Partial<Denial>,
  mapping: Mapping | undefined,
  ended: Omit<FinishedCall, 'providerId' | 'modelId' | keyof CallTimes>,
): Promise<string> {
  const call = newCall(facts, decision);
  const { providerId = null, modelId = null } = mapping ?? {};
  const outcome = { ...ended, providerId, modelId, ...timesOf(facts.context) };
  await store.recordFinishedCall(call, decisionRecord(decision, reason), outcome);
  facts.context.onEnd(mapping, 0n);
  telemetry.callFinished({ action: facts.action, target: mapping, errorCode: ended.errorCode });
  return call.id;
}

/**
 * Commits the call's row, with its decision and what its key's limits hold back for it, before anything is dispatched. Whether a
 * limit applies is read there; only then the demand is needed, and only candidates with a bound may serve.
 * @throws ApiError 401 or 429 when the limits leave no room, StoreUnavailable
 */
export async function openCall(
  app: CoreContext,
  facts: CallFacts,
  permitted: Permitted,
  findDemand: () => Demand,
  promptUsage: Opening['promptUsage'],
): Promise<Call> {
  const startedAt = performance.now();
  const call = newCall(facts, permitted.decision);
  const { candidates } = permitted;
  const paid = facts.isSandboxFree ? candidates.map((mapping) => charged(mapping, facts)) : candidates;
  const bounds = new CallBounds(paid, findDemand);
  // A key that got its limit just now is the exception.
  if (facts.principal.capped) bounds.measure();
  const opened = await app.store
    .openCall(call, decisionRecord(permitted.decision), bounds, candidates)
    .catch((error: unknown) => {
      // A refusal has its row; that the store could not do its work has none.
      if (error instanceof ApiError && error.status < 500) {
        app.telemetry.callFinished({ action: facts.action, target: undefined, errorCode: error.code });
      }
      throw error;
    });
  const priced = opened.reservation === undefined ? permitted : permitted.narrowed((mapping) => bounds.has(mapping));
  return new Call(app, facts, { permitted: priced, opened, startedAt, bounds, promptUsage });
}

/** Most attempts for one call, the first included (src/core/README.md, "failover"). */
const MAX_ATTEMPTS = 3;

interface RouteOptions {
  /** `stream`: `streamEnded` or `streamBroke` reports its end, since its beginning is no success yet. Default: whole. */
  readonly kind?: 'whole' | 'stream';
  /** Whether the caller has seen a part of an answer: then no other attempt may follow. Default: never. */
  readonly isShown?: () => boolean;
  /** Fields of the request that a target would leave out: those that honour all of it go first. Default: none. */
  readonly dropped?: (target: Target) => readonly string[];
}

/** One exchange with a target; for a stream the limits bound the whole of it. @throws TransportError, UpstreamError */
type Attempt<T> = (target: Target, limits: ExchangeLimits) => Promise<T>;

/** The answer of the attempt that succeeded: the last of the call's. */
export interface RouteResult<T> {
  readonly value: T;
  readonly target: Target;
}

/** A call whose answer came whole, and which is settled. */
interface SettledResult<T> extends RouteResult<T> {
  /** Usage of the attempt that served it. */
  readonly usage: Usage;
  /** Cost of the whole call. */
  readonly cost: Cost;
}

/**
 * Routes an open call to an answer that comes whole, and settles it; resolves when the settlement is committed.
 * @param attempt gives the answer, and what it is billed by
 * @throws as `route` does
 */
export async function serveWhole<T>(
  app: CoreContext,
  call: Call,
  attempt: Attempt<{ readonly value: T; readonly usage: Usage }>,
  options?: RouteOptions,
): Promise<SettledResult<T>> {
  const { value: answer, target } = await route(app, call, attempt, options);
  return { ...answer, target, cost: await call.settle(answer.usage) };
}

/**
 * Tries the permitted candidates until one attempt succeeds: those that honour the whole request first, then by the order of the
 * alias that was asked for, else the cheapest, each with the customer's keys in their order and then the service's. What failed
 * recently goes last. Only what `Permitted` holds is ever called, and each attempt checks it again.
 * @throws ApiError, PolicyFailure or StoreUnavailable when no attempt succeeded: then the call is settled
 */
export async function route<T>(
  app: CoreContext,
  call: Call,
  attempt: Attempt<T>,
  options: RouteOptions = {},
): Promise<RouteResult<T>> {
  const { findReach, health } = app;
  const { permitted, opened, attempts } = call;
  const { principal, context } = call.facts;
  const deadline = performance.now() + app.totalTimeoutMs;
  const most = context.noFallback ? 1 : MAX_ATTEMPTS;
  let last: UpstreamError | undefined;
  let retryAfterMs: number | undefined;
  try {
    // The first attempt follows at once on the opening of the call, which read what it goes by; later ones read it again.
    let reach = await findReach(principal, opened.providers);
    let plan = health.ordered(targetsOf(call, reach, options));
    for (let next = plan.shift(); next !== undefined && attempts.length < most; next = plan.shift()) {
      const isFirst = attempts.length === 0;
      if (!isFirst) reach = await findReach(principal);
      const target = current(reach, next);
      if (target === undefined) continue;
      // The reservation covers one attempt, so the cost of the failed ones is held back in addition.
      if (!isFirst && !(await app.store.continueCall(opened, call.charged))) break;
      await permitted.assertHolds(target.mapping, isFirst ? opened.ruleRevision : undefined);
      const remainingMs = Math.ceil(deadline - performance.now());
      if (remainingMs <= 0) break;
      const result = await tryTarget(app, call, target, remainingMs, attempt, options);
      if (result.error === undefined) return { value: result.value, target };
      last = result.error;
      const isShown = options.isShown?.() === true;
      const charge = await chargeOf(call, target, last, isShown);
      if (charge !== undefined) call.charges.push(charge);
      retryAfterMs = shorter(retryAfterMs, last.retryAfterMs);
      if (!last.retryable || context.signal.aborted || isShown) break;
      plan = afterFailure(plan, target, last);
    }
    last ??= new UpstreamError('connection', 'No provider is left to serve the call.');
    throw failureAnswer(last, attempts.at(-1), retryAfterMs);
  } catch (error) {
    throw await call.fail(error);
  }
}

/** Every way to serve a call, in the order in which they are tried. */
function targetsOf({ permitted, facts }: Call, reach: Reach, { dropped }: RouteOptions): readonly Target[] {
  const targets = attemptOrder(permitted.candidates, facts).flatMap((mapping) => reach.targets(mapping));
  if (targets.length < 2 || dropped === undefined) return targets;
  const honoursAll = (target: Target): boolean => dropped(target).length === 0;
  return [...targets.filter(honoursAll), ...targets.filter((target) => !honoursAll(target))];
}

function attemptOrder(candidates: readonly Mapping[], { order, context }: CallFacts): readonly Mapping[] {
  if (candidates.length === 1) return candidates;
  return order === undefined ? candidates.toSorted(comparePrice) : inOrder(order, candidates, context.requestId);
}

/**
 * The target with the same mapping and provider key, if it still exists: keys are withdrawn and providers removed while a call
 * runs.
 */
const current = (reach: Reach, { mapping, credential }: Target): Target | undefined =>
  reach.targets(mapping).find((each) => each.credential.providerKeyId === credential.providerKeyId);

/**
 * The targets to try after a failure. Another provider is more likely to help than this one with another key, unless the key
 * failed.
 */
function afterFailure(rest: readonly Target[], { mapping }: Target, { errorType }: UpstreamError): Target[] {
  if (errorType === 'credential' || errorType === 'rate_limited') return [...rest];
  const isSame = (target: Target): boolean => target.mapping.id === mapping.id;
  return [...rest.filter((target) => !isSame(target)), ...rest.filter(isSame)];
}

const shorter = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);

/**
 * The charge for a failed attempt: the provider's report, or, where we ended it, an estimate of the prompt (src/core/README.md,
 * "cancel"); undefined: nothing. A whole answer that one of our bounds refused was produced as well, at a price that we do not
 * know; so was content that was shown in part.
 */
async function chargeOf(
  call: Call,
  { mapping }: Target,
  error: UpstreamError,
  wasShown: boolean,
): Promise<Charge | undefined> {
  if (error.usage !== undefined) return { usage: error.usage, cost: call.costOf(error.usage, mapping) };
  if (!endedByUs(error)) return undefined;
  const usage = await call.promptUsage(mapping);
  const cost = call.costOf(usage, mapping);
  return { usage, cost: wasShown || isTooLarge(error) ? { ...cost, unknownPrice: true } : cost };
}

type AttemptResult<T> = { readonly value: T; readonly error?: undefined } | { readonly error: UpstreamError };

/** One attempt, with its record and its bearing on the target's health. */
async function tryTarget<T>(
  { health, telemetry }: CoreContext,
  call: Call,
  target: Target,
  totalTimeoutMs: number,
  attempt: Attempt<T>,
  { kind = 'whole' }: RouteOptions,
): Promise<AttemptResult<T>> {
  const { principal, context } = call.facts;
  const { signal, room } = context;
  const isProbe = health.begun(target);
  let outcome: 'succeeded' | 'failed' | undefined;
  let restMs: number | undefined;
  call.target = target;
  call.attemptBegins();
  try {
    const value = await attempt(target, { signal, room, share: principal.organizationId, totalTimeoutMs });
    call.attempts.push(attemptRecord(call, target));
    if (kind === 'whole') {
      call.attemptEnds();
      outcome = 'succeeded';
      telemetry.attemptSucceeded(target.mapping);
    }
    return { value };
  } catch (thrown) {
    const error = toUpstreamError(thrown);
    call.attemptEnds();
    call.attemptFailed(call.attempts.length, causeOf(error));
    call.attempts.push(attemptRecord(call, target, error));
    if (signal.aborted) return { error };
    if (error.errorType !== 'rejected' && !cutByUs(error)) outcome = 'failed';
    restMs = error.retryAfterMs;
    telemetry.attemptFailed(call.id, target.mapping, loggedFailure(error));
    return { error };
  } finally {
    health.ended(target, isProbe, outcome, restMs);
  }
}

/** A stream has come to its end: only now its attempt has succeeded. */
export function streamEnded({ health, telemetry }: CoreContext, call: Call, target: Target): void {
  call.attemptEnds();
  health.ended(target, false, 'succeeded');
  telemetry.attemptSucceeded(target.mapping);
}

/** A stream has broken after it had begun: its attempt has failed after all. */
export function streamBroke(
  { health, telemetry }: CoreContext,
  call: Call,
  target: Target,
  error: UpstreamError,
): void {
  call.attemptEnds();
  call.attemptFailed(call.attempts.length - 1, causeOf(error));
  if (!cutByUs(error)) health.ended(target, false, 'failed', error.retryAfterMs);
  telemetry.attemptFailed(call.id, target.mapping, loggedFailure(error));
  call.attempts.splice(-1, 1, attemptRecord(call, target, error));
}

/** @param error undefined: it succeeded */
function attemptRecord({ id }: Call, { mapping, credential }: Target, error?: UpstreamError): RoutingAttempt {
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
    logId: id,
  };
}
