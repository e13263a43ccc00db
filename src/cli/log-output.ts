import { callRecord, decisionEntry } from '../admin/log/log-view.ts';
import type {
  CallList,
  CallRecord,
  DecisionEntry,
  DecisionList,
  LoggedDecision,
  RefusedRequestList,
  RefusedRequestRecord,
} from '../generated/types.ts';
import { plainText } from '../lib/text.ts';
import type { LoggedCall } from '../store/ledger/call-log.ts';
import { printRuleTable, scopeText, showShadow, violationTable } from './policy/access-output.ts';
import {
  type Cell,
  type Column,
  extra,
  type Format,
  free,
  growingTable,
  print,
  printJson,
  printTable,
  timeText,
} from './terminal/output.ts';

type Names = ReadonlyMap<string, string>;

/** The name alone: `--wide` shows the id in a column of its own. */
const nameIn = (names: Names, id: string): string => names.get(id) ?? 'unnamed';

const outcomeCell = (outcome: 'permit' | 'deny' | null): Cell =>
  outcome === 'deny' ? { text: 'deny', colour: 'red' } : { text: outcome ?? '-' };

const costText = (cost: string | null): string => cost ?? 'unknown';

const servedText = ({ provider, model }: Pick<CallRecord, 'provider' | 'model'>): string =>
  provider === null && model === null ? '-' : `${provider ?? '?'}/${model ?? '?'}`;

/** Prints the option that continues the list. */
function printMore(nextCursor: string | null): void {
  if (nextCursor !== null) print(`\nThere are more: --cursor ${nextCursor}`);
}

const DECISION_TITLES = [
  ...['TIME', 'DECISION', 'OUTCOME', free('REASON'), free('KEY'), free('MODEL')],
  ...extra('SERVED BY', 'FROM', 'KEY ID'),
];

const decisionRow = (entry: DecisionEntry, names: Names): Cell[] => [
  { text: timeText(entry.timestamp) },
  { text: entry.id },
  outcomeCell(entry.outcome),
  { text: entry.reason ?? '-' },
  { text: nameIn(names, entry.keyId) },
  { text: entry.requestedModel },
  { text: servedText(entry) },
  { text: entry.requestedBy ?? '-' },
  { text: entry.keyId },
];

/** @param names of keys, by their ids */
export function showDecisions(list: DecisionList, names: Names, format: Format): void {
  if (format.json) {
    printJson(list);
    return;
  }
  const rows = list.decisions.map((entry) => decisionRow(entry, names));
  printTable(DECISION_TITLES, rows, 'No decisions.', format);
  printMore(list.nextCursor);
}

/** With what would have become of them with the report rules in force. @param names of keys, by their ids */
export function showDecisionsWithShadow(list: DecisionList, names: Names): void {
  const withShadow = <T>(cells: readonly T[], shadow: T): T[] => [...cells.slice(0, 3), shadow, ...cells.slice(3)];
  const rows = list.decisions.map((entry) => withShadow(decisionRow(entry, names), outcomeCell(entry.shadowOutcome)));
  printTable(withShadow<Column>(DECISION_TITLES, 'WOULD BE'), rows, 'No decisions.');
  printMore(list.nextCursor);
}

const CALL_TITLES = [
  ...['TIME', 'CALL', 'STATE', free('KEY'), free('MODEL'), 'MS', 'USD'],
  ...extra('STATUS', 'SERVED BY', 'TOKENS IN', 'TOKENS OUT', 'KEY ID'),
];

/** `2,511`. */
const grouped = (count: number): string => count.toLocaleString('en-US');

const callRow = (call: CallRecord, names: Names): Cell[] => [
  { text: timeText(call.createdAt) },
  { text: call.id },
  { text: call.state, ...(call.state === 'denied' ? { colour: 'red' } : {}) },
  { text: nameIn(names, call.keyId) },
  { text: call.requestedModel },
  { text: call.timing === null ? '-' : grouped(call.timing.tookMs) },
  { text: costText(call.cost) },
  { text: String(call.statusCode ?? '-') },
  { text: servedText(call) },
  { text: String(call.promptTokens) },
  { text: String(call.completionTokens) },
  { text: call.keyId },
];

/** @param names of keys, by their ids */
export function showCalls(list: CallList, names: Names, format: Format): void {
  if (format.json) {
    printJson(list);
    return;
  }
  const rows = list.calls.map((call) => callRow(call, names));
  printTable(CALL_TITLES, rows, 'No calls.', format);
  printMore(list.nextCursor);
}

/** Shows calls one after the other, in their order. @param names of keys, by their ids */
export type ShowNext = (calls: readonly LoggedCall[], names: Names) => void;

function tailOf<Shown>(
  columns: readonly Column[],
  shown: (call: LoggedCall) => Shown,
  row: (shown: Shown, names: Names) => Cell[],
  format: Format,
): ShowNext {
  const table = growingTable(columns, format);
  return (calls, names) => {
    if (format.json) for (const call of calls) print(JSON.stringify(shown(call)));
    else table(calls.map((call) => row(shown(call), names)));
  };
}

export const decisionTail = (format: Format): ShowNext => tailOf(DECISION_TITLES, decisionEntry, decisionRow, format);

export const callTail = (format: Format): ShowNext => tailOf(CALL_TITLES, callRecord, callRow, format);

const idWith = (names: Names, id: string): string => (names.has(id) ? `${names.get(id)} (${id})` : id);

/** Lines of names and values; what has no value is left out. */
function printFields(fields: Readonly<Record<string, string | null>>): void {
  const shown = Object.entries(fields).flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  const width = Math.max(...shown.map(([name]) => name.length));
  for (const [name, value] of shown) print(`${name.padEnd(width)}  ${plainText(value)}`);
}

const attemptLines = (attempts: CallRecord['attempts']): string | null =>
  attempts === null
    ? null
    : attempts.map((each) => `${each.provider}/${each.model} ${each.status_code ?? each.error_type}`).join(', ');

/** `2,511 ms: 2,504 openai, 7 gateway, first token after 812`; attempts at one provider are one part. */
function tookText({ timing, attempts }: CallRecord): string | null {
  if (timing === null) return null;
  const { tookMs, receivingMs, gatewayMs, firstTokenMs } = timing;
  const byProvider = new Map<string, number>();
  for (const { provider, durationMs = 0 } of attempts ?? []) {
    const name = String(provider);
    byProvider.set(name, (byProvider.get(name) ?? 0) + durationMs);
  }
  const parts = [
    ...(receivingMs === 0 ? [] : [`${grouped(receivingMs)} waiting for the request`]),
    ...[...byProvider].map(([name, ms]) => `${grouped(ms)} ${name}`),
    `${grouped(gatewayMs)} gateway`,
    ...(firstTokenMs === null ? [] : [`first token after ${grouped(firstTokenMs)}`]),
  ];
  return `${grouped(tookMs)} ms: ${parts.join(', ')}`;
}

/** Each attempt with its time, its answer, and why it failed. */
function printAttempts(attempts: NonNullable<CallRecord['attempts']>): void {
  print('');
  printTable(
    ['ATTEMPT', free('CREDENTIAL'), 'MS', 'ANSWER', free('WHY')],
    attempts.map((each): Cell[] => [
      { text: `${each.provider}/${each.model}` },
      { text: String(each.providerKeyLabel ?? each.credentialSource) },
      { text: each.durationMs === undefined ? '-' : grouped(each.durationMs) },
      each.succeeded === true
        ? { text: String(each.status_code) }
        : { text: `${each.status_code ?? 'none'} ${each.error_type}`, colour: 'red' },
      { text: each.cause === undefined ? '-' : `${each.cause}: ${each.explanation ?? ''}` },
    ]),
    '',
  );
}

/** Why it was decided so, in words. @param names of the key, its owner and its project, by their ids */
export function showDecision(decision: LoggedDecision, names: Names, { json }: Format): void {
  if (json) {
    printJson({ decision });
    return;
  }
  const { outcome, message, violations, rules, shadow, input } = decision;
  print(`${decision.timestamp}: ${outcome === 'deny' ? 'denied' : 'permitted'} (policy ${revisionOf(decision)})`);
  if (message !== null) print(plainText(message));
  print('');
  printFields({
    asked: `${decision.action} with ${decision.requestedModel}${decision.tool === null ? '' : ` by ${decision.tool}`}`,
    from: decision.requestedBy ?? 'an unknown address',
    key: idWith(names, decision.keyId),
    owner: idWith(names, decision.memberId),
    project: idWith(names, decision.projectId),
    answer: `${decision.statusCode ?? 'none'}${decision.errorCode === null ? '' : ` ${decision.errorCode}`}`,
    'served by': decision.provider === null ? null : servedText(decision),
    attempts: attemptLines(decision.attempts),
    cost: outcome === 'deny' ? null : costText(decision.cost),
    candidates: input.candidates.map(({ id }) => id).join(', '),
    decision: decision.id,
    call: decision.callId,
    request: decision.requestId,
    "caller's id": decision.clientRequestId,
  });
  print('');
  violationTable(rules, violations);
  if (rules.length > 0) print('');
  printRuleTable(
    ['RULE', free('SCOPE'), 'TYPE', 'MODE', free('DESCRIPTION')],
    rules,
    (rule): Cell[] => [
      { text: rule.id },
      { text: scopeText(rule) },
      { text: rule.ruleType },
      { text: rule.mode },
      { text: rule.description === null ? '-' : `${rule.description}${rule.describedThen ? '' : ' (now)'}` },
    ],
    '\nIt saw no rules.',
  );
  if (shadow !== null) {
    print('');
    showShadow(shadow, input.candidates.length, rules);
  }
}

/** As `x-policy-revision` says it. */
const revisionOf = ({ bundles, ruleRevision }: LoggedDecision): string =>
  `${bundles.policy.revision.slice(0, 12)}.${ruleRevision}`;

/** @param names of the key, its owner and its project, by their ids */
export function showCall(call: CallRecord, names: Names, { json }: Format): void {
  if (json) {
    printJson({ call });
    return;
  }
  printFields({
    time: call.createdAt,
    settled: call.settledAt,
    took: tookText(call),
    state: call.state,
    asked: `${call.action} with ${call.requestedModel}${call.tool === null ? '' : ` by ${call.tool}`}`,
    from: call.address ?? 'an unknown address',
    key: idWith(names, call.keyId),
    owner: idWith(names, call.memberId),
    project: idWith(names, call.projectId),
    outcome: call.outcome,
    reason: call.reason,
    answer: `${call.statusCode ?? 'none'}${call.errorCode === null ? '' : ` ${call.errorCode}`}`,
    'served by': call.provider === null ? null : servedText(call),
    tokens: `${call.promptTokens} in, ${call.completionTokens} out${call.usageEstimated ? ', estimated' : ''}`,
    cost: `${costText(call.cost)}${call.cached ? ' (from the cache)' : ''}`,
    call: call.id,
    decision: call.decisionId,
    request: call.requestId,
    "caller's id": call.clientRequestId,
  });
  if (call.attempts !== null) printAttempts(call.attempts);
}

const agentText = ({ requestedModel, userAgent }: RefusedRequestRecord): string =>
  [requestedModel, userAgent].flatMap((part) => part ?? []).join(', ') || '-';

/** @param names of keys, by their ids */
export function showRefusedRequests(list: RefusedRequestList, names: Names, format: Format): void {
  if (format.json) {
    printJson(list);
    return;
  }
  printTable(
    [...['TIME', 'REQUEST', 'STATUS', 'CODE', free('KEY'), free('MODEL, PROGRAM')], ...extra('FROM', 'KEY ID')],
    list.requests.map((each): Cell[] => [
      { text: timeText(each.time) },
      { text: each.requestId },
      { text: String(each.statusCode) },
      { text: each.errorCode ?? '-' },
      { text: each.keyId === null ? '-' : nameIn(names, each.keyId) },
      { text: agentText(each) },
      { text: each.address ?? '-' },
      { text: each.keyId ?? '-' },
    ]),
    'No refused requests.',
    format,
  );
  printMore(list.nextCursor);
}

/** @param names of the key, its owner and its project, by their ids */
export function showRefusedRequest(request: RefusedRequestRecord, names: Names, { json }: Format): void {
  if (json) {
    printJson({ request });
    return;
  }
  const known = (id: string | null): string | null => (id === null ? null : idWith(names, id));
  print('The request was refused before it was a call.\n');
  printFields({
    time: request.time,
    answer: `${request.statusCode}${request.errorCode === null ? '' : ` ${request.errorCode}`}`,
    message: request.message,
    why: request.detail,
    asked: `${request.endpoint}${request.requestedModel === null ? '' : ` with ${request.requestedModel}`}`,
    from: request.address ?? 'an unknown address',
    program: request.userAgent,
    key: known(request.keyId) ?? 'none that is known',
    owner: known(request.memberId),
    project: known(request.projectId),
    request: request.requestId,
    "caller's id": request.clientRequestId,
    'not recorded': request.unrecorded === 0 ? null : `${grouped(request.unrecorded)} like it before`,
  });
}
