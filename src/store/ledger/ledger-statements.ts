import { type RawBuilder, sql } from 'kysely';
import { MAX_AMOUNT } from '../../domain/money.ts';
import type { Database } from '../db/database.ts';
import { bind, build, prepare } from '../db/sql.ts';
import type { Flag, SpendColumns } from '../db/tables.ts';
import { KEY_STATE_COLUMNS } from '../tenants/keys.ts';

/** Adds to a sum, which stays at the largest amount instead of overflowing. */
const increased = (column: keyof SpendColumns, amount: string) =>
  sql<bigint>`min(${sql.ref(column)} + ${bind<bigint>(amount)}, ${sql.raw(String(MAX_AMOUNT))})`;

const decreased = (column: keyof SpendColumns, amount: string) =>
  sql<bigint>`max(${sql.ref(column)} - ${bind<bigint>(amount)}, 0)`;

type Window = RawBuilder<number | null>;

/** The value only while `window`, in which the call was opened, still runs. */
const inWindow = (window: Window, column: keyof SpendColumns, value: RawBuilder<bigint>) =>
  sql<bigint>`CASE WHEN currentPeriodStartedAt = ${window} THEN ${value} ELSE ${sql.ref(column)} END`;

/** Holds back what a call may cost, in the window in which it was opened. */
const held = (window: Window) => ({
  reserved: increased('reserved', 'reservation'),
  currentPeriodReserved: inWindow(window, 'currentPeriodReserved', increased('currentPeriodReserved', 'reservation')),
});

/** Books what a call cost, in the window in which it was opened, and frees what was held back for it. */
const booked = (window: Window) => ({
  usage: increased('usage', 'cost'),
  reserved: decreased('reserved', 'reservation'),
  currentPeriodUsage: inWindow(window, 'currentPeriodUsage', increased('currentPeriodUsage', 'cost')),
  currentPeriodReserved: inWindow(window, 'currentPeriodReserved', decreased('currentPeriodReserved', 'reservation')),
});

const keyWindow = bind<number | null>('periodStartedAt');

/** Of the budget in whose row it stands. */
const budgetWindow = sql<number | null>`CASE scope
  WHEN 'member' THEN ${bind<number | null>('memberPeriodStartedAt')}
  WHEN 'project' THEN ${bind<number | null>('projectPeriodStartedAt')}
  ELSE ${bind<number | null>('organizationPeriodStartedAt')} END`;

/** The subjects of a call that may have budgets. */
const budgetSubjects = [bind<string>('memberId'), bind<string>('projectId'), bind<string>('organizationId')];

const openColumns = {
  id: bind<string>('id'),
  organization_id: bind<string>('organizationId'),
  project_id: bind<string>('projectId'),
  key_id: bind<string>('keyId'),
  member_id: bind<string>('memberId'),
  decision_id: bind<string>('decisionId'),
  action: bind<string>('action'),
  request_id: bind<string>('requestId'),
  client_request_id: bind<string | null>('clientRequestId'),
  client_address: bind<string | null>('clientAddress'),
  tool: bind<string | null>('tool'),
  requested_model: bind<string>('requestedModel'),
  stream: bind<Flag>('stream'),
  created_at: bind<number>('now'),
};

const insertOpenCall = build.insertInto('calls').values({
  ...openColumns,
  state: 'open',
  reservation_pico: bind<bigint>('reservation'),
  period_started_at: keyWindow,
  member_period_started_at: bind<number | null>('memberPeriodStartedAt'),
  project_period_started_at: bind<number | null>('projectPeriodStartedAt'),
  organization_period_started_at: bind<number | null>('organizationPeriodStartedAt'),
});

const insertFinishedCall = build.insertInto('calls').values({
  ...openColumns,
  state: bind<'denied' | 'settled' | 'released'>('state'),
  settled_at: bind<number>('now'),
  cached: bind<Flag>('cached'),
  provider_id: bind<string | null>('providerId'),
  model_id: bind<string | null>('modelId'),
  status_code: bind<number>('statusCode'),
  error_code: bind<string | null>('errorCode'),
});

/** Settles an open call and no other. */
const settleOpenCall = build
  .updateTable('calls')
  .set({
    state: bind<'settled' | 'released'>('state'),
    settled_at: bind<number>('now'),
    cost_pico: bind<bigint>('cost'),
    price_unknown: bind<Flag>('priceUnknown'),
    cost_details_json: bind<string | null>('costDetailsJson'),
    prompt_tokens: bind<number>('promptTokens'),
    completion_tokens: bind<number>('completionTokens'),
    reasoning_tokens: bind<number>('reasoningTokens'),
    cached_tokens: bind<number>('cachedTokens'),
    cache_write_tokens: bind<number>('cacheWriteTokens'),
    usage_estimated: bind<Flag>('usageEstimated'),
    provider_id: bind<string | null>('providerId'),
    model_id: bind<string | null>('modelId'),
    provider_key_id: bind<string | null>('providerKeyId'),
    attempts_json: bind<string | null>('attemptsJson'),
    status_code: bind<number>('statusCode'),
    error_code: bind<string | null>('errorCode'),
  })
  .where('id', '=', bind<string>('callId'))
  .where('organization_id', '=', bind<string>('organizationId'))
  .where('state', '=', 'open');

/** More is held back for an open call. */
const reserveMore = build
  .updateTable('calls')
  .set({ reservation_pico: sql<bigint>`reservation_pico + ${bind<bigint>('reservation')}` })
  .where('id', '=', bind<string>('callId'))
  .where('organization_id', '=', bind<string>('organizationId'))
  .where('state', '=', 'open');

const selectKey = build
  .selectFrom('keys')
  .innerJoin('organizations', 'organizations.id', 'keys.organizationId')
  .select(KEY_STATE_COLUMNS)
  .select('organizations.ruleRevision')
  // As subqueries: with bare parameters in a join SQLite plans the statement again for every value.
  .where('keys.id', '=', sql<string>`(SELECT ${bind<string>('keyId')})`)
  .where('keys.organizationId', '=', sql<string>`(SELECT ${bind<string>('organizationId')})`);

const newPeriod = {
  currentPeriodStartedAt: bind<number>('startedAt'),
  currentPeriodUsage: 0n,
  currentPeriodReserved: 0n,
};

const startPeriod = build
  .updateTable('keys')
  .set(newPeriod)
  .where('id', '=', bind<string>('subjectId'))
  .where('organizationId', '=', bind<string>('organizationId'));

const startBudgetPeriod = build
  .updateTable('budgets')
  .set(newPeriod)
  .where('subjectId', '=', bind<string>('subjectId'))
  .where('organizationId', '=', bind<string>('organizationId'));

/**
 * Begin of the latest window of a key, member, project or organization that open calls belong to. The state as a literal: only so
 * is the index used.
 */
const latestOpenPeriod = build
  .selectFrom('calls')
  .select(
    sql<number | null>`max(CASE ${bind<string>('subjectId')}
      WHEN key_id THEN period_started_at
      WHEN member_id THEN member_period_started_at
      WHEN project_id THEN project_period_started_at
      WHEN organization_id THEN organization_period_started_at END)`.as('started_at'),
  )
  .where('state', '=', sql.lit('open'))
  .where('organization_id', '=', bind<string>('organizationId'));

const holdBack = build
  .updateTable('keys')
  .set(held(keyWindow))
  .where('id', '=', bind<string>('keyId'))
  .where('organizationId', '=', bind<string>('organizationId'));

const holdBackBudgets = build
  .updateTable('budgets')
  .set(held(budgetWindow))
  .where('subjectId', 'in', budgetSubjects)
  .where('organizationId', '=', bind<string>('organizationId'));

/** Books a call to its key. */
const bookCost = build
  .updateTable('keys')
  .set({ ...booked(keyWindow), lastUsedAt: bind<number>('now') })
  .where('id', '=', bind<string>('keyId'))
  .where('organizationId', '=', bind<string>('organizationId'));

/** Books a call to the budgets that there are now, also those that were not there when it was opened. */
const bookBudgets = build
  .updateTable('budgets')
  .set(booked(budgetWindow))
  .where('subjectId', 'in', budgetSubjects)
  .where('organizationId', '=', bind<string>('organizationId'));

const touchKey = build
  .updateTable('keys')
  .set({ lastUsedAt: bind<number>('now') })
  .where('id', '=', bind<string>('keyId'))
  .where('organizationId', '=', bind<string>('organizationId'));

/** The statements of the hot path, compiled and prepared once for a connection. */
export const prepareLedgerStatements = ({ connection }: Database) => ({
  insertOpenCall: prepare(connection, insertOpenCall.compile()),
  insertFinishedCall: prepare(connection, insertFinishedCall.compile()),
  settleOpenCall: prepare(connection, settleOpenCall.compile()),
  reserveMore: prepare(connection, reserveMore.compile()),
  selectKey: prepare(connection, selectKey.compile()),
  latestOpenPeriod: prepare(connection, latestOpenPeriod.compile()),
  startPeriod: prepare(connection, startPeriod.compile()),
  startBudgetPeriod: prepare(connection, startBudgetPeriod.compile()),
  holdBack: prepare(connection, holdBack.compile()),
  holdBackBudgets: prepare(connection, holdBackBudgets.compile()),
  bookCost: prepare(connection, bookCost.compile()),
  bookBudgets: prepare(connection, bookBudgets.compile()),
  touchKey: prepare(connection, touchKey.compile()),
});

export type LedgerStatements = ReturnType<typeof prepareLedgerStatements>;
