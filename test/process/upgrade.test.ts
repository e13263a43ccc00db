// A start brings the database of every earlier version up to date; what looks at it before that must do with the tables of then.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createContainer } from '../../src/container.ts';
import { type IdPrefix, idsFrom } from '../../src/domain/id.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { openDatabase } from '../../src/store/db/database.ts';
import { build } from '../../src/store/db/sql.ts';
import { getDataDocument, getDecision } from '../../src/store/ledger/references.ts';
import { columnNames } from '../../src/store/migrations/0012-column-names.ts';
import { oneRowACall } from '../../src/store/migrations/0013-one-row-a-call.ts';
import { migrate, schemaVersion } from '../../src/store/migrations/migrate.ts';
import { MIGRATIONS } from '../../src/store/migrations/migrations.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { testConfig } from '../support/gateway.ts';
import { send } from '../support/request.ts';

let dataDir: string;

beforeEach(() => {
  dataDir = mkdtempSync(path.join(tmpdir(), 'portcullis-test-'));
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

const RULE_VALUE = '{"models":["gpt-5"]}';

const TIME = Date.parse('2026-01-27T10:00:00Z');
const idAt = (prefix: IdPrefix, time: number, number: number): string =>
  idsFrom(prefix, time).slice(0, -2) + number.toString(16).padStart(2, '0');

const DECIDED = {
  bundle_digest: 'b'.repeat(64),
  data_digest: 'd'.repeat(64),
  rule_revision: 3,
  input_json: '{"action":"chat"}',
  shadow_json: null,
};
const PERMITTED = { ...DECIDED, outcome: 'permit', reason_json: null, violations_json: '[]' };
const DENIED = { ...DECIDED, outcome: 'deny', reason_json: '{"kind":"model"}', violations_json: '[{"rule":"rule_1"}]' };

/** Two calls of one millisecond that have all in common, but what is their own; one of the next, that was denied. */
const CALLS = [
  { number: 1, time: TIME, decision: PERMITTED, state: 'settled', cost: 9_007_199_254_740_993n, statusCode: 200 },
  { number: 2, time: TIME, decision: PERMITTED, state: 'released', cost: 0n, statusCode: 401 },
  { number: 3, time: TIME + 1, decision: DENIED, state: 'denied', cost: 0n, statusCode: 403 },
] as const;

/** A row of `calls` and of `decisions` as that version had them, and what readers see of them now. */
function storedCall({ number, time, decision, state, cost, statusCode }: (typeof CALLS)[number], version: number) {
  const id = idAt('call', time, number);
  const decisionId = idAt('dec', time - 20, number);
  const served = state === 'settled';
  const shared = {
    organization_id: 'org_1',
    key_id: 'key_1',
    action: 'chat',
    requested_model: 'large',
    created_at: time + 5,
  };
  const call = {
    ...shared,
    id,
    project_id: 'proj_1',
    member_id: 'mem_1',
    decision_id: decisionId,
    state,
    request_id: idAt('req', time - 30, number),
    client_request_id: served ? 'mine' : null,
    client_address: '192.0.2.1',
    stream: 1,
    reservation_pico: 70n,
    period_started_at: TIME - 1000,
    settled_at: time + 800,
    cost_pico: cost,
    cost_details_json: served ? '{"total_cost":"9007.199254740993"}' : null,
    prompt_tokens: 10,
    completion_tokens: 5,
    reasoning_tokens: 1,
    cached_tokens: 2,
    cache_write_tokens: 3,
    usage_estimated: 1,
    cached: 0,
    provider_id: served ? 'sandbox' : null,
    model_id: served ? 'echo' : null,
    provider_key_id: served ? 'pkey_1' : null,
    attempts_json: served ? `[{"provider":"sandbox","logId":"${id}"}]` : null,
    status_code: statusCode,
    error_code: served ? null : 'permission_denied',
    ...(version < 4 ? {} : { member_period_started_at: TIME - 2000 }),
    ...(version < 5 ? {} : { price_unknown: 1 }),
    ...(version < 8 ? {} : { tool: 'generate_image' }),
  };
  return { call, decision: { ...shared, ...decision, id: decisionId, call_id: id } };
}

const camelCase = (name: string): string =>
  name.replace(/_pico$/, '').replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());

const renamed = (row: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [camelCase(name), value]));

/** What the columns hold that a version did not have yet. */
const LATER = {
  memberPeriodStartedAt: null,
  projectPeriodStartedAt: null,
  organizationPeriodStartedAt: null,
  priceUnknown: 0,
  tool: null,
};

function insertRow(db: BetterSqlite3.Database, table: string, row: object): void {
  const places = Object.keys(row).map(() => '?');
  db.prepare(`INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${places.join(', ')})`).run(
    Object.values(row),
  );
}

/** As a server of that version left it: an organization with a key, its rule and, in versions of other tables than now, its calls. */
function writeDatabase(version: number): void {
  const { peppers } = loadSecrets(dataDir, { create: true });
  const db = new BetterSqlite3(databasePath(dataDir));
  const named = Math.min(version, MIGRATIONS.indexOf(columnNames));
  migrate(db, named);
  insertRows(db, named, peppers[0].id);
  migrate(db, version);
  db.close();
}

/** By the names that columns had up to the migration which renames them. */
function insertRows(db: BetterSqlite3.Database, version: number, pepperId: string): void {
  db.exec(`
    INSERT INTO organizations (id, name, created_at, updated_at) VALUES ('org_1', 'One', 0, 0);
    INSERT INTO projects (id, organization_id, name, created_at, updated_at) VALUES ('proj_1', 'org_1', 'P', 0, 0);
    INSERT INTO members (id, organization_id, email, role, created_at, updated_at) VALUES ('mem_1', 'org_1', 'o@x.example', 'owner', 0, 0);
  `);
  db.prepare(
    `INSERT INTO keys (id, organization_id, project_id, created_by, description, secret_hash, pepper_id, mask, created_at, updated_at)
     VALUES ('key_1', 'org_1', 'proj_1', 'mem_1', '', 'h', ?, 'm', 0, 0)`,
  ).run(pepperId);
  const value = `'${RULE_VALUE}'`;
  const [column, canonical] = version < 11 ? [', canonical_json', `, ${value}`] : ['', ''];
  db.exec("INSERT INTO subject_rules (subject_id, organization_id, scope) VALUES ('key_1', 'org_1', 'key')");
  db.exec(
    `INSERT INTO rules (id, organization_id, subject_id, scope, rule_type, rule_value_json, created_at, updated_at${column})
     VALUES ('rule_1', 'org_1', 'key_1', 'key', 'deny_models', ${value}, 0, 0${canonical})`,
  );
  insertRow(db, 'data_documents', { digest: DECIDED.data_digest, text: '{"subjects":{}}', created_at: 0 });
  for (const { call, decision } of CALLS.map((each) => storedCall(each, version))) {
    insertRow(db, 'calls', call);
    insertRow(db, 'decisions', decision);
  }
}

const databaseNow = () => {
  const db = new BetterSqlite3(databasePath(dataDir), { readonly: true });
  const found = {
    version: schemaVersion(db),
    keys: db.prepare('SELECT id FROM keys').pluck().all(),
    rules: db.prepare('SELECT ruleValueJson FROM rules').pluck().all(),
  };
  db.close();
  return found;
};

it.each(MIGRATIONS.slice(0, MIGRATIONS.indexOf(oneRowACall)).map((_, index) => index + 1))(
  'calls and their decisions of schema version %d read the same as before, and what they have in common is kept once',
  async (version) => {
    writeDatabase(version);
    const container = await createContainer(testConfig(dataDir));
    await container.close();

    const db = openDatabase(databasePath(dataDir), { readonly: true });
    const stored = CALLS.map((each) => storedCall(each, version));
    const calls = db.all(build.selectFrom('calls').selectAll().orderBy('number'));
    const decisions = db.all(build.selectFrom('decisions').selectAll().orderBy('number'));
    expect(calls.map(({ number: _, ...row }) => row)).toEqual(
      stored.map(({ call }) => ({ ...LATER, ...renamed(call) })),
    );
    expect(decisions.map(({ number: _, ...row }) => row)).toEqual(stored.map(({ decision }) => renamed(decision)));
    for (const { decision } of stored) {
      expect(getDecision(db, 'org_1', decision.id)).toMatchObject({ id: decision.id, callId: decision.call_id });
      expect(getDataDocument(db, 'org_1', decision.id)).toBe('{"subjects":{}}');
    }
    const count = (table: 'call_origins' | 'call_verdicts' | 'call_targets' | 'data_documents') =>
      db.all(build.selectFrom(table).select('id')).length;
    expect([count('call_origins'), count('call_verdicts'), count('call_targets'), count('data_documents')]).toEqual([
      1, 2, 1, 1,
    ]);
    db.close();
  },
);

it.each(MIGRATIONS.map((_, index) => index + 1))(
  'a database of schema version %d is brought up to date',
  async (version) => {
    writeDatabase(version);

    const container = await createContainer(testConfig(dataDir));
    const { status } = await send(container.gateway.origin, { path: '/health' });
    await container.close();

    expect(container.firstRun).toBeUndefined();
    expect([status, databaseNow()]).toEqual([
      200,
      { version: MIGRATIONS.length, keys: ['key_1'], rules: [RULE_VALUE] },
    ]);
  },
);
