import type { ApiError } from '../../domain/errors.ts';
import type { Mapping } from '../../domain/model.ts';
import type { WorstCase } from '../../domain/reservation.ts';
import type { Store } from '../../store/store.ts';
import { decisionRecord, type Permitted } from '../access/authorize.ts';
import type { Demand } from '../price/demand.ts';
import { type Bound, boundOf, outputLimit, unpricedCall, worstCaseOf } from '../price/worst-case.ts';
import { type Call, type CallFacts, newCall } from './call.ts';

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
  store: Store,
  facts: CallFacts,
  permitted: Permitted,
  findDemand: () => Demand,
  promptUsage: Call['promptUsage'],
): Promise<Call> {
  const call = newCall(facts);
  facts.context.onCall(call.id);
  // Measuring a large body takes long, which no transaction should; a key that got its limit just now is the exception.
  let demand: Demand | undefined = facts.principal.capped ? findDemand() : undefined;
  let bounded: Bounded | undefined;
  const { candidates } = permitted;
  const findWorstCase = () => {
    demand ??= findDemand();
    bounded ??= boundAll(candidates, demand);
    return bounded.worstCase;
  };
  const opened = await store.openCall(call, decisionRecord(permitted.decision), findWorstCase, candidates);
  const { reservation } = opened;
  if (reservation === undefined || bounded === undefined || demand === undefined) {
    return { id: call.id, permitted, opened, outputLimit: () => undefined, promptUsage };
  }
  const { bounds } = bounded;
  const { maxOutputTokens: named } = demand;
  return {
    id: call.id,
    permitted: permitted.narrowed(({ id }) => bounds.has(id)),
    opened,
    outputLimit: ({ id }) => outputLimit(bounds.get(id), reservation, named),
    promptUsage,
  };
}
