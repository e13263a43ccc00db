import { ApiError } from '../../domain/errors.ts';
import { idLike } from '../../domain/id.ts';
import type { Mapping } from '../../domain/model.ts';
import type { Bound, WorstCase } from '../../domain/reservation.ts';
import type { Clock } from '../../domain/time.ts';
import type { PolicyFacts } from '../../generated/types.ts';
import type { FinishedCall, NewCall } from '../../store/ledger/ledger.ts';
import {
  type AuthorizeDeps,
  authorize,
  type Decision,
  Denial,
  decisionRecord,
  type Permitted,
} from '../access/authorize.ts';
import type { Principal } from '../access/principal.ts';
import type { Demand } from '../price/demand.ts';
import { boundOf, outputLimit, unpricedCall, worstCaseOf } from '../price/worst-case.ts';
import { Call, type CallDeps, type CallFacts, type CallTimes, charged, type Opening, timesOf } from './call.ts';
import { type Asked, type RequestFacts, requestFacts } from './policy-facts.ts';

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
  deps: AuthorizeDeps & CallDeps & { readonly clock: Clock },
  facts: CallFacts,
  candidates: readonly Mapping[],
  findAsked: () => Asked,
): Promise<Permitted> {
  const { principal, context, action } = facts;
  let found: RequestFacts | undefined;
  const findFacts = ({ keyTags }: Principal): PolicyFacts => {
    found ??= requestFacts(deps.clock.now(), facts, findAsked(), candidates);
    return { ...found, key_tags: [...keyTags] };
  };
  try {
    return await authorize(deps, { principal, context, action, candidates, findFacts });
  } catch (error) {
    if (!(error instanceof Denial)) throw error;
    const answer = error.answer();
    await recordFinished(deps, facts, error, undefined, {
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
  deps: CallDeps,
  facts: CallFacts,
  { decision }: Permitted,
  mapping: Mapping,
): Promise<string> {
  const ended = { state: 'settled', cached: true, statusCode: 200, errorCode: null } as const;
  return recordFinished(deps, facts, { decision }, mapping, ended);
}

async function recordFinished(
  { store, telemetry }: CallDeps,
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

/** The bounds of the candidates that have one, by their ids, and what the most expensive may cost. */
interface Bounded {
  readonly bounds: ReadonlyMap<string, Bound>;
  readonly worstCase: WorstCase | ApiError;
}

function boundAll(candidates: readonly Mapping[], demand: Demand): Bounded {
  const bounds = new Map<string, Bound>();
  for (const mapping of candidates) {
    const bound = boundOf(mapping, demand);
    if (bound !== undefined) bounds.set(mapping.id, bound);
  }
  const worstCase = bounds.size === 0 ? unpricedCall(candidates, demand) : worstCaseOf([...bounds.values()], demand);
  return { bounds, worstCase };
}

/**
 * Commits the call's row, with its decision and what its key's limits hold back for it, before anything is dispatched. Whether a
 * limit applies is read there; only then the demand is needed, and only candidates with a bound may serve.
 * @throws ApiError 401 or 429 when the limits leave no room, StoreUnavailable
 */
export async function openCall(
  deps: CallDeps,
  facts: CallFacts,
  permitted: Permitted,
  findDemand: () => Demand,
  promptUsage: Opening['promptUsage'],
): Promise<Call> {
  const startedAt = performance.now();
  const call = newCall(facts, permitted.decision);
  // Measuring a large body takes long, which no transaction should; a key that got its limit just now is the exception.
  let demand: Demand | undefined = facts.principal.capped ? findDemand() : undefined;
  let bounded: Bounded | undefined;
  const { candidates } = permitted;
  const findWorstCase = () => {
    demand ??= findDemand();
    bounded ??= boundAll(
      facts.isSandboxFree ? candidates.map((mapping) => charged(mapping, facts)) : candidates,
      demand,
    );
    return bounded.worstCase;
  };
  const opened = await deps.store
    .openCall(call, decisionRecord(permitted.decision), findWorstCase, candidates)
    .catch((error: unknown) => {
      // A refusal has its row; that the store could not do its work has none.
      if (error instanceof ApiError && error.status < 500) {
        deps.telemetry.callFinished({ action: facts.action, target: undefined, errorCode: error.code });
      }
      throw error;
    });
  const { reservation } = opened;
  if (reservation === undefined || bounded === undefined || demand === undefined) {
    return new Call(deps, facts, { permitted, opened, startedAt, outputLimit: () => undefined, promptUsage });
  }
  const { bounds } = bounded;
  const { maxOutputTokens: named } = demand;
  return new Call(deps, facts, {
    permitted: permitted.narrowed(({ id }) => bounds.has(id)),
    opened,
    startedAt,
    outputLimit: ({ id }) => outputLimit(bounds.get(id), reservation, named),
    promptUsage,
  });
}
