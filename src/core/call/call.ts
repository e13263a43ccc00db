import { newId } from '../../domain/id.ts';
import type { Mapping } from '../../domain/model.ts';
import { formatUsd } from '../../domain/money.ts';
import type { Reservation } from '../../domain/reservation.ts';
import { NO_USAGE, sumUsage, type Usage } from '../../domain/usage.ts';
import type { PolicyInput, RoutingAttempt } from '../../generated/types.ts';
import type { Credential } from '../../providers/providers.ts';
import type { NewCall, OpenCall, Settlement } from '../../store/ledger/ledger.ts';
import type { Store } from '../../store/store.ts';
import { type Denial, decisionRecord, type Permitted } from '../access/authorize.ts';
import type { CallContext } from '../access/call-context.ts';
import type { Principal } from '../access/principal.ts';
import { type Charge, type Cost, withCharges } from '../price/meter.ts';
import type { OutputLimit } from '../price/worst-case.ts';

/** A call whose row is committed: it may be dispatched, and must be settled. */
export interface Call {
  readonly id: string;
  readonly permitted: Permitted;
  /** What the ledger must know to settle it. */
  readonly opened: OpenCall;
  /** Of a chat at this mapping; undefined where the key has no limit. */
  outputLimit(mapping: Mapping): OutputLimit | undefined;
  /** What a provider has read of it by the time it answers: an estimate, with nothing of an answer in it. */
  promptUsage(mapping: Mapping): Usage | Promise<Usage>;
}

/** Of whom and what a call's row tells. */
export interface CallFacts {
  readonly principal: Principal;
  readonly context: CallContext;
  readonly action: PolicyInput['action'];
  readonly requestedModel: string;
  readonly stream: boolean;
}

/** Who is paid for a call. */
export interface Billed {
  readonly mapping: Mapping;
  readonly credential: Pick<Credential, 'providerKeyId'>;
}

/** How a call ended. */
export interface Outcome {
  readonly statusCode: number;
  readonly errorCode: string | null;
  readonly target: Billed | undefined;
  readonly attempts: readonly RoutingAttempt[];
  readonly usage: Usage;
  /** Undefined when nothing was produced. */
  readonly cost: Cost | undefined;
  /** Of attempts that failed; not part of `usage` and `cost`. */
  readonly charges: readonly Charge[];
}

/** A call that nobody served, at the cost of its attempts. @param target of the last attempt, if any is paid for */
export const failed = (
  statusCode: number,
  errorCode: string,
  attempts: readonly RoutingAttempt[],
  charges: readonly Charge[] = [],
  target?: Billed,
): Outcome => ({
  statusCode,
  errorCode,
  attempts,
  charges,
  target: charges.length === 0 ? undefined : target,
  usage: NO_USAGE,
  cost: undefined,
});

export function newCall({ principal, context, action, requestedModel, stream }: CallFacts): NewCall {
  return {
    id: newId('call'),
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

/** Writes the finished row of a denied call; resolves when it is committed. */
export async function recordDenial(store: Store, facts: CallFacts, denial: Denial): Promise<void> {
  const call = newCall(facts);
  facts.context.onCall(call.id);
  const { status, code } = denial.answer();
  await store.recordFinishedCall(call, decisionRecord(denial.decision, denial.reason), {
    state: 'denied',
    cached: false,
    providerId: null,
    modelId: null,
    statusCode: status,
    errorCode: code,
  });
}

/** Writes the finished row of a call that the cache answers; resolves when it is committed. */
export async function recordCacheHit(
  store: Store,
  facts: CallFacts,
  { decision }: Permitted,
  { providerId, modelId }: Mapping,
): Promise<Pick<Call, 'id'>> {
  const call = newCall(facts);
  facts.context.onCall(call.id);
  await store.recordFinishedCall(call, decisionRecord(decision), {
    state: 'settled',
    cached: true,
    providerId,
    modelId,
    statusCode: 200,
    errorCode: null,
  });
  facts.context.onCacheHit();
  return { id: call.id };
}

/** The parts that are not nothing, as decimal strings in USD. */
function costDetailsJson({ unknownPrice: _, unpricedSearch: __, hasFailedAttempts: ___, ...amounts }: Cost): string {
  const parts: Record<string, string> = {};
  for (const [name, amount] of Object.entries(amounts)) if (amount > 0n) parts[name] = formatUsd(amount);
  return JSON.stringify(parts);
}

/**
 * What is booked for an attempt. Where its price is unknown, pictures are charged by tokens that the provider did not report, say,
 * a call with a limit pays what was reserved for it: the limit cannot be kept by taking them for free.
 */
export const amountOf = ({ total, unknownPrice }: Cost, reservation: Reservation | undefined): bigint =>
  unknownPrice && reservation !== undefined ? reservation.amount : total;

/** What the answering attempt and those before it took. */
function wholeOf({ usage, cost, charges }: Outcome): [usage: Usage, cost: Cost | undefined] {
  const [first, ...others] = charges;
  if (first === undefined) return [usage, cost];
  const all = sumUsage([usage, ...charges.map((charge) => charge.usage)]);
  return [all, cost === undefined ? withCharges(first.cost, others) : withCharges(cost, charges)];
}

function settlement(outcome: Outcome, reservation?: Reservation): Settlement {
  const { target, attempts, statusCode, errorCode, charges } = outcome;
  const [usage, cost] = wholeOf(outcome);
  const costs = [...charges.map((charge) => charge.cost), ...(outcome.cost === undefined ? [] : [outcome.cost])];
  return {
    state: 'settled',
    cost: costs.reduce((sum, each) => sum + amountOf(each, reservation), 0n),
    priceUnknown: cost !== undefined && (cost.unknownPrice ? reservation === undefined : cost.unpricedSearch),
    costDetailsJson: cost === undefined ? null : costDetailsJson(cost),
    promptTokens: usage.promptTokens,
    completionTokens: usage.completionTokens,
    reasoningTokens: usage.reasoningTokens,
    cachedTokens: usage.cachedTokens,
    cacheWriteTokens: usage.cacheWrite5mTokens + usage.cacheWrite1hTokens,
    usageEstimated: usage.estimated,
    providerId: target?.mapping.providerId ?? null,
    modelId: target?.mapping.modelId ?? null,
    providerKeyId: target?.credential.providerKeyId ?? null,
    attemptsJson: attempts.length === 0 ? null : JSON.stringify(attempts),
    statusCode,
    errorCode,
  };
}

/** Settles a call on its row; resolves when that is committed. The answer must wait for it. */
export async function settleCall(store: Store, call: Call, outcome: Outcome): Promise<void> {
  await store.settleCall(call.opened, settlement(outcome, call.opened.reservation));
}

/** Ends a call of which nothing was sent to a provider: what was held back for it is free again. */
export async function releaseCall(store: Store, call: Call, statusCode: number, errorCode: string): Promise<void> {
  await store.settleCall(call.opened, { ...settlement(failed(statusCode, errorCode, [])), state: 'released' });
}
