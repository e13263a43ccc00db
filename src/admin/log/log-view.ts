import { notFound } from '../../domain/errors.ts';
import { RULE_TYPES } from '../../domain/iam-rule.ts';
import { timeOfId } from '../../domain/id.ts';
import { formatUsd } from '../../domain/limits.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  CallList,
  CallRecord,
  DecisionEntry,
  DecisionList,
  LoggedDecision,
  ManagedBy,
  PolicyData,
  RefusedRequestList,
  RefusedRequestRecord,
  SeenRule,
} from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import { denialMessage, namedIn } from '../../policy/denial.ts';
import { explainCause } from '../../providers/wire/upstream-error.ts';
import { describedAt } from '../../store/audit/audit-entries.ts';
import type { Database } from '../../store/db/database.ts';
import { getLoggedCall, type LoggedCall, searchCalls } from '../../store/ledger/call-log.ts';
import { getDataDocument, getDecision, type StoredDecision } from '../../store/ledger/references.ts';
import { findRefused, listRefused, type RefusedRequest } from '../../store/ledger/refused-requests.ts';
import { findNames } from '../../store/tenants/tenants.ts';
import type { LogRequest, RefusedListRequest, SeenBy } from './log-query.ts';

/** The entry point of the policy. */
export const DECISION_PATH = 'gateway/authz/decision';

/** Fields that calls and decisions share. */
function common(call: LoggedCall) {
  const { cost, priceUnknown, providerId: provider, modelId: model } = call;
  const { requestId, clientRequestId, projectId, keyId, memberId, action, tool, requestedModel } = call;
  const { reason, statusCode, errorCode } = call;
  const shown = cost === 0n && priceUnknown === 1 ? null : formatUsd(cost);
  const asked = { requestId, clientRequestId, projectId, keyId, memberId, action, tool, requestedModel };
  return { ...asked, reason, provider, model, statusCode, errorCode, cost: shown };
}

/** With how long each took, and why it failed. */
function attemptsOf({ attempts, times }: LoggedCall): CallRecord['attempts'] {
  if (attempts === null) return null;
  return attempts.map((attempt, place) => {
    const { cause } = attempt;
    const explanation = typeof cause === 'string' ? explainCause(cause) : undefined;
    return { ...attempt, ...times?.attempts[place], ...(explanation === undefined ? {} : { explanation }) };
  });
}

function timingOf({ tookMs, times }: LoggedCall): CallRecord['timing'] {
  if (tookMs === null || times === undefined) return null;
  const { receivingMs, firstTokenMs, attempts } = times;
  const providersMs = attempts.reduce((sum, { durationMs }) => sum + durationMs, 0);
  // Each is rounded by itself.
  const gatewayMs = Math.max(0, tookMs - receivingMs - providersMs);
  return { tookMs: receivingMs + providersMs + gatewayMs, receivingMs, providersMs, gatewayMs, firstTokenMs };
}

export const callRecord = (call: LoggedCall): CallRecord => ({
  id: call.id,
  decisionId: call.decisionId,
  createdAt: formatTime(call.createdAt),
  settledAt: call.settledAt === null ? null : formatTime(call.settledAt),
  state: call.state,
  ...common(call),
  stream: call.stream === 1,
  address: call.clientAddress,
  outcome: call.outcome,
  cached: call.cached === 1,
  promptTokens: call.promptTokens,
  completionTokens: call.completionTokens,
  reasoningTokens: call.reasoningTokens,
  cachedTokens: call.cachedTokens,
  cacheWriteTokens: call.cacheWriteTokens,
  usageEstimated: call.usageEstimated === 1,
  costDetails: call.costDetails,
  attempts: attemptsOf(call),
  timing: timingOf(call),
});

export function decisionEntry(call: LoggedCall): DecisionEntry {
  if (call.outcome === null) throw notFound('There is no such decision.');
  return {
    id: call.decisionId,
    callId: call.id,
    timestamp: formatTime(call.createdAt),
    ...common(call),
    requestedBy: call.clientAddress,
    outcome: call.outcome,
    shadowOutcome: call.shadowPermitted === null ? null : call.shadowPermitted > 0 ? 'permit' : 'deny',
  };
}

/** A page of calls, newest first. This and all below may read much: not for the serving thread. */
export function listCalls(db: Database, { filter, page }: LogRequest): CallList {
  const { items, nextCursor } = searchCalls(db, filter, page);
  return { calls: items.map(callRecord), nextCursor };
}

export function listDecisions(db: Database, { filter, page }: LogRequest): DecisionList {
  const { items, nextCursor } = searchCalls(db, { ...filter, isDecided: true }, page);
  return { decisions: items.map(decisionEntry), nextCursor };
}

/** @param id of a call or its decision. Unknown, or another member's where one sees only their own: 404 */
function getSeen(db: Database, { organizationId, memberId }: SeenBy, id: string): LoggedCall {
  if (!/^(?:call|dec)_[0-9a-f]{32}$/.test(id)) throw notFound('There is no such call or decision.');
  const call = getLoggedCall(db, organizationId, id);
  if (memberId !== undefined && call.memberId !== memberId) throw notFound('There is no such call or decision.');
  return call;
}

export const getCall = (db: Database, by: SeenBy, id: string): CallRecord => callRecord(getSeen(db, by, id));

export const refusedRequestView = (request: RefusedRequest): RefusedRequestRecord => {
  const { id, organizationId, clientAddress, ...shown } = request;
  return { requestId: id, time: formatTime(timeOfId(id)), ...shown, address: clientAddress };
};

/** A page of refused requests, newest first. */
export function listRefusedRequests(db: Database, { filter, page }: RefusedListRequest): RefusedRequestList {
  const { items, nextCursor } = listRefused(db, filter, page);
  return { requests: items.map(refusedRequestView), nextCursor };
}

/** @param id ours, or the caller's own. Unknown, or another member's where one sees only their own: 404 */
export function getRefusedRequest(
  db: Database,
  { organizationId, memberId }: SeenBy,
  id: string,
): RefusedRequestRecord {
  const request = findRefused(db, organizationId, id);
  if (request === undefined || (memberId !== undefined && request.memberId !== memberId)) {
    throw notFound('There is no refused request of this id.');
  }
  return refusedRequestView(request);
}

/** A decision with all that led to it. @throws ApiError 404 */
export function getLoggedDecision(db: Database, by: SeenBy, id: string): LoggedDecision {
  const call = getSeen(db, by, id);
  const entry = decisionEntry(call);
  const decision = getDecision(db, by.organizationId, entry.id);
  const { reason: denial, violations, shadow, input, bundleDigest, ruleRevision, dataDigest } = decision;
  const rules = listSeenRules(db, decision);
  const names = new Map([
    ...(denial === null ? [] : findNames(db, by.organizationId, namedIn(denial))),
    ...rules.map((rule) => [rule.id, rule.description] as const),
  ]);
  return {
    ...entry,
    message: denial === null ? null : denialMessage(denial, names),
    path: DECISION_PATH,
    bundles: { policy: { revision: bundleDigest } },
    ruleRevision,
    input,
    violations,
    shadow,
    denial,
    dataDigest,
    rules,
    costDetails: call.costDetails,
    attempts: attemptsOf(call),
  };
}

/** The policy folder that an entry of the audit log names, if it names one; entries from before there were any do not. */
function managedIn(json: string | null): Pick<SeenRule, 'managedBy'> {
  const managedBy: ManagedBy | null = JSON.parse(json ?? 'null');
  return managedBy === null ? {} : { managedBy };
}

/**
 * The rules of the data document that a decision saw, outermost scope first. Rules keep no history: the description is that of the last
 * entry of the audit log before the decision, else the present one. Reads the whole document: not for the serving thread.
 */
function listSeenRules(db: Database, { id, organizationId, createdAt, input }: StoredDecision): SeenRule[] {
  const { subjects }: PolicyData = JSON.parse(getDataDocument(db, organizationId, id));
  const rules = input.subjects.flatMap(({ scope, id: subjectId }) => {
    const of = entryOf(subjects, subjectId);
    if (of === undefined) return [];
    const { enforce, shadow = enforce, report_rules: reported = {} } = of;
    return RULE_TYPES.flatMap((ruleType) =>
      (shadow[ruleType]?.rules ?? []).map((rule) => {
        const mode: SeenRule['mode'] = entryOf(reported, rule) === true ? 'report' : 'enforce';
        return { id: rule, scope, subjectId, ruleType, mode };
      }),
    );
  });
  const names = findNames(
    db,
    organizationId,
    rules.flatMap((rule) => [rule.id, rule.subjectId]),
  );
  const named = rules.map((rule) =>
    rule.scope === 'group' ? { ...rule, groupName: names.get(rule.subjectId) ?? rule.subjectId } : rule,
  );
  return named.map((rule) => {
    const then = describedAt(db, organizationId, rule.id, createdAt);
    return then === undefined
      ? { ...rule, description: names.get(rule.id) ?? null, describedThen: false }
      : { ...rule, description: then.description, describedThen: true, ...managedIn(then.managedByJson) };
  });
}
