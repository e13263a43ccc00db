// A start brings the database of every earlier version up to date; what looks at it before that must do with the tables of then.
import { hash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createContainer } from '../../src/container.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { columnNames } from '../../src/store/migrations/0012-column-names.ts';
import { schemaVersion } from '../../src/store/migrations/migrate.ts';
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

/** As a server of that version left it: an organization with a key and its rule. */
function writeDatabase(version: number): void {
  const { peppers } = loadSecrets(dataDir, { create: true });
  const db = new BetterSqlite3(databasePath(dataDir));
  db.exec(
    'CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, digest TEXT NOT NULL) STRICT',
  );
  db.unsafeMode(true);
  const named = MIGRATIONS.indexOf(columnNames);
  for (const [index, migration] of MIGRATIONS.slice(0, version).entries()) {
    if (index === named) insertRows(db, index, peppers[0].id);
    db.exec(migration);
    db.prepare('INSERT INTO schema_version VALUES (?, 0, ?)').run(index + 1, hash('sha256', migration));
  }
  if (version <= named) insertRows(db, version, peppers[0].id);
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
