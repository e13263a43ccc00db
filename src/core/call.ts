import { type ApiError, unauthorized } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import type { Mapping } from '../domain/model.ts';
import { formatUsd } from '../domain/money.ts';
import { NO_USAGE, type Usage } from '../domain/usage.ts';
import type { PolicyInput, RoutingAttempt } from '../generated/types.ts';
import type { DecisionRecord } from '../store/decisions.ts';
import type { NewCall, OpenCall, Settlement } from '../store/ledger.ts';
import type { Store } from '../store/store.ts';
import { type Denial, decisionRecord, type Permitted } from './authorize.ts';
import type { CallContext } from './call-context.ts';
import type { Cost } from './meter.ts';
import type { Principal } from './principal.ts';
import type { Target } from './target.ts';

/** A call whose row is committed: it may be dispatched, and must be settled. */
export interface Call {
  readonly id: string;
  readonly permitted: Permitted;
  /** What the ledger must know to settle it. */
  readonly opened: OpenCall;
}

/** Of whom and what a call's row tells. */
export interface CallFacts {
  readonly principal: Principal;
  readonly context: CallContext;
  readonly action: PolicyInput['action'];
  readonly requestedModel: string;
  readonly stream: boolean;
}

/** How a call ended. */
export interface Outcome {
  readonly statusCode: number;
  readonly errorCode: string | null;
  readonly target: Target | undefined;
  readonly attempts: readonly RoutingAttempt[];
  readonly usage: Usage;
  /** Undefined when nothing was produced. */
  readonly cost: Cost | undefined;
}

export const failed = (statusCode: number, errorCode: string, attempts: readonly RoutingAttempt[]): Outcome => ({
  statusCode,
  errorCode,
  attempts,
  target: undefined,
  usage: NO_USAGE,
  cost: undefined,
});

function newCall({ principal, context, action, requestedModel, stream }: CallFacts): NewCall {
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
    requestedModel,
    stream,
    reservation: 0n,
  };
}

/** Writes the row of a call that ends before dispatch, with its decision; resolves when it is committed. */
async function recordRefusal(
  store: Store,
  facts: CallFacts,
  decision: DecisionRecord,
  state: 'denied' | 'released',
  { status, code }: ApiError,
): Promise<void> {
  const call = newCall(facts);
  facts.context.onCall(call.id);
  await store.recordFinishedCall(call, decision, {
    state,
    cached: false,
    providerId: null,
    modelId: null,
    statusCode: status,
    errorCode: code,
  });
}

/** Writes the finished row of a denied call; resolves when it is committed. */
export const recordDenial = (store: Store, facts: CallFacts, denial: Denial): Promise<void> =>
  recordRefusal(store, facts, decisionRecord(denial.decision, denial.reason), 'denied', denial.answer());

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

/** While a spend limit applies, a mapping whose charge for the action cannot be told may not serve: the limit could not be enforced. */
export function isPriced({ prices, freeFlag }: Mapping, action: PolicyInput['action']): boolean {
  const { prompt, completion, output_image: imageToken, per_image: image } = prices;
  switch (action) {
    case 'chat':
      return prompt !== undefined && completion !== undefined;
    case 'image':
      return image !== undefined || (prompt !== undefined && (imageToken ?? completion) !== undefined);
    case 'moderation':
      return prompt !== undefined || freeFlag;
  }
}

const unknownPrices = (): ApiError =>
  unauthorized(
    'usage_limit_reached',
    'This API key has a usage limit, and no price is known for any permitted provider of the model: the limit could not be kept.',
  );

/** Commits the call's row, with its decision, before anything is dispatched. */
export async function openCall(store: Store, facts: CallFacts, permitted: Permitted): Promise<Call> {
  const reachable = facts.principal.capped
    ? permitted.narrowed((mapping) => isPriced(mapping, facts.action))
    : permitted;
  if (reachable.candidates.length === 0) {
    const refusal = unknownPrices();
    await recordRefusal(store, facts, decisionRecord(permitted.decision), 'released', refusal);
    throw refusal;
  }
  const call = newCall(facts);
  facts.context.onCall(call.id);
  const opened = await store.openCall(call, decisionRecord(permitted.decision));
  return { id: call.id, permitted: reachable, opened };
}

/** The parts that are not nothing, as decimal strings in USD. */
function costDetailsJson({ unknownPrice: _, unpricedSearch: __, ...amounts }: Cost): string {
  const parts: Record<string, string> = {};
  for (const [name, amount] of Object.entries(amounts)) if (amount > 0n) parts[name] = formatUsd(amount);
  return JSON.stringify(parts);
}

function settlement({ target, attempts, usage, cost, statusCode, errorCode }: Outcome): Settlement {
  return {
    cost: cost?.total ?? 0n,
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
  await store.settleCall(call.opened, settlement(outcome));
}
