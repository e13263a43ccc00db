import { sql } from 'kysely';
import { MAX_AMOUNT } from '../domain/money.ts';
import type { Database } from './database.ts';
import { KEY_STATE_COLUMNS } from './key-columns.ts';
import { bind, build, prepare } from './sql.ts';
import type { Flag, KeysTable } from './tables.ts';

/** Adds to a sum, which stays at the largest amount instead of overflowing. */
const increased = (column: keyof KeysTable, amount: string) =>
  sql<bigint>`min(${sql.ref(column)} + ${bind<bigint>(amount)}, ${sql.raw(String(MAX_AMOUNT))})`;

const decreased = (column: keyof KeysTable, amount: string) =>
  sql<bigint>`max(${sql.ref(column)} - ${bind<bigint>(amount)}, 0)`;

/** The value only while the window in which the call was opened is still the key's. */
const inItsWindow = (column: keyof KeysTable, value: ReturnType<typeof increased>) =>
  sql<bigint>`CASE WHEN period_started_at = ${bind<number | null>('periodStartedAt')} THEN ${value} ELSE ${sql.ref(column)} END`;

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
  requested_model: bind<string>('requestedModel'),
  stream: bind<Flag>('stream'),
  created_at: bind<number>('now'),
};

const insertOpenCall = build.insertInto('calls').values({
  ...openColumns,
  state: 'open',
  reservation_pico: bind<bigint>('reservation'),
  period_started_at: bind<number | null>('periodStartedAt'),
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

const selectKey = build
  .selectFrom('keys')
  .innerJoin('organizations', 'organizations.id', 'keys.organization_id')
  .select(KEY_STATE_COLUMNS)
  .select('organizations.rule_revision')
  // As subqueries: with bare parameters in a join SQLite plans the statement anew for every value.
  .where('keys.id', '=', sql<string>`(SELECT ${bind<string>('keyId')})`)
  .where('keys.organization_id', '=', sql<string>`(SELECT ${bind<string>('organizationId')})`);

const startPeriod = build
  .updateTable('keys')
  .set({ period_started_at: bind<number>('startedAt'), period_usage_pico: 0n, period_reserved_pico: 0n })
  .where('id', '=', bind<string>('keyId'))
  .where('organization_id', '=', bind<string>('organizationId'));

/** Begin of the latest window that open calls of a key belong to. The state as a literal: only so is the index used. */
const latestOpenPeriod = build
  .selectFrom('calls')
  .select(({ fn }) => fn.max('period_started_at').as('started_at'))
  .where('state', '=', sql.lit('open'))
  .where('key_id', '=', bind<string>('keyId'))
  .where('organization_id', '=', bind<string>('organizationId'));

const holdBack = build
  .updateTable('keys')
  .set({
    reserved_pico: increased('reserved_pico', 'reservation'),
    period_reserved_pico: inItsWindow('period_reserved_pico', increased('period_reserved_pico', 'reservation')),
  })
  .where('id', '=', bind<string>('keyId'))
  .where('organization_id', '=', bind<string>('organizationId'));

/** Books the cost of a call to its key, in the window in which it was opened, and frees what was held back for it. */
const bookCost = build
  .updateTable('keys')
  .set({
    usage_pico: increased('usage_pico', 'cost'),
    reserved_pico: decreased('reserved_pico', 'reservation'),
    period_usage_pico: inItsWindow('period_usage_pico', increased('period_usage_pico', 'cost')),
    period_reserved_pico: inItsWindow('period_reserved_pico', decreased('period_reserved_pico', 'reservation')),
    last_used_at: bind<number>('now'),
  })
  .where('id', '=', bind<string>('keyId'))
  .where('organization_id', '=', bind<string>('organizationId'));

const touchKey = build
  .updateTable('keys')
  .set({ last_used_at: bind<number>('now') })
  .where('id', '=', bind<string>('keyId'))
  .where('organization_id', '=', bind<string>('organizationId'));

/** The statements of the hot path, compiled and prepared once for a connection. */
export const prepareLedgerStatements = ({ connection }: Database) => ({
  insertOpenCall: prepare(connection, insertOpenCall.compile()),
  insertFinishedCall: prepare(connection, insertFinishedCall.compile()),
  settleOpenCall: prepare(connection, settleOpenCall.compile()),
  selectKey: prepare(connection, selectKey.compile()),
  latestOpenPeriod: prepare(connection, latestOpenPeriod.compile()),
  startPeriod: prepare(connection, startPeriod.compile()),
  holdBack: prepare(connection, holdBack.compile()),
  bookCost: prepare(connection, bookCost.compile()),
  touchKey: prepare(connection, touchKey.compile()),
});

export type LedgerStatements = ReturnType<typeof prepareLedgerStatements>;
