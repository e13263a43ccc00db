import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type DatabaseOptions, openDatabase } from '../../../src/store/db/database.ts';
import { MIGRATIONS, migrate, schemaVersion } from '../../../src/store/migrations/migrate.ts';
import { insertOrganization, listOrganizations } from '../../../src/store/tenants/tenants.ts';
import { temporaryDirectory } from '../fixture.ts';

const newPath = () => join(temporaryDirectory(), 'portcullis.sqlite');

function open(path: string, options: DatabaseOptions = {}) {
  const db = openDatabase(path, options);
  onTestFinished(() => db.close());
  return db;
}

/** How SQLite calls the levels of `PRAGMA synchronous`. */
const NORMAL = 1;
const FULL = 2;

describe('opening', () => {
  test('a missing database is an error, and makes none', () => {
    const path = newPath();
    expect(() => openDatabase(path)).toThrow(`There is no database at ${path}: start the server once to create it.`);
    expect(existsSync(path)).toBe(false);
  });

  test('the server creates it in WAL mode with every migration, and opens it again', () => {
    const path = newPath();
    for (let i = 0; i < 2; i++) {
      const db = open(path, { create: true });
      const pragma = (name: string) => db.connection.pragma(name, { simple: true });
      expect([pragma('journal_mode'), pragma('synchronous'), pragma('foreign_keys'), pragma('busy_timeout')]).toEqual([
        'wal',
        NORMAL,
        1,
        250,
      ]);
      expect(db.connection.prepare('SELECT version FROM schema_version').pluck().all()).toEqual(
        MIGRATIONS.map((_, index) => index + 1),
      );
    }
  });

  test('durability full asks SQLite for a sync at every commit', () => {
    const db = open(newPath(), { create: true, durability: 'full' });
    expect(db.connection.pragma('synchronous', { simple: true })).toBe(FULL);
  });

  test('a read-only connection reads and cannot write', () => {
    const path = newPath();
    insertOrganization(open(path, { create: true }), { id: 'org_1', name: 'Acme' }, 5);
    const db = open(path, { readonly: true });
    expect(listOrganizations(db).map(({ id }) => id)).toEqual(['org_1']);
    expect(() => insertOrganization(db, { id: 'org_2', name: 'Acme' }, 5)).toThrow('readonly');
  });

  test.each([
    ['newer', MIGRATIONS.length + 1, 'knows', 'use the newer version that made it'],
    ['older', MIGRATIONS.length - 1, 'needs', 'start the server once to bring it up to date'],
  ])('a database of a %s schema is refused with the remedy', (_, version, verb, remedy) => {
    const path = newPath();
    const other = new BetterSqlite3(path);
    other.exec('CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, digest TEXT)');
    for (let i = 1; i <= version; i++) {
      other.prepare('INSERT INTO schema_version VALUES (?, 0, ?)').run(i, hash('sha256', MIGRATIONS[i - 1] ?? ''));
    }
    other.close();
    expect(() => openDatabase(path)).toThrow(
      `${path} has schema version ${version}, this version of Portcullis ${verb} ${MIGRATIONS.length}: ${remedy}.`,
    );
  });
});

test.each([
  ['was made by other migrations', "UPDATE schema_version SET digest = 'another'"],
  ['contains no digests of its migrations', 'ALTER TABLE schema_version DROP COLUMN digest'],
])('a database that %s is refused by name, by the server too', (_, change) => {
  const path = newPath();
  const made = openDatabase(path, { create: true });
  made.connection.exec(change);
  made.close();
  for (const create of [true, false]) {
    expect(() => openDatabase(path, { create })).toThrow(
      `${path} was made by a version of Portcullis before 0.2.0, or by an unreleased one, and cannot be opened: use the version that made it, or another DATA_DIR.`,
    );
  }
});

describe('a migration', () => {
  const NEXT = 'CREATE TABLE of_the_next_version (a INTEGER) STRICT';
  const tables = (connection: BetterSqlite3.Database) =>
    connection.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'of_the%' ORDER BY name").pluck().all();

  test('is applied once, after those before it, and leaves their rows', () => {
    const { connection } = open(newPath(), { create: true });
    connection.exec("INSERT INTO organizations (id, name, createdAt, updatedAt) VALUES ('org_1', 'Acme', 5, 5)");
    for (let i = 0; i < 2; i++) migrate(connection, [...MIGRATIONS, NEXT]);
    expect([schemaVersion(connection), tables(connection)]).toEqual([MIGRATIONS.length + 1, ['of_the_next_version']]);
    expect(connection.prepare('SELECT id FROM organizations').pluck().all()).toEqual(['org_1']);
  });

  test('that fails undoes those that were applied with it', () => {
    const { connection } = open(newPath(), { create: true });
    expect(() => migrate(connection, [...MIGRATIONS, NEXT, 'CREATE TABLE organizations (a)'])).toThrow(
      'already exists',
    );
    expect([schemaVersion(connection), tables(connection)]).toEqual([MIGRATIONS.length, []]);
  });
});

/** What the types of the tables call bigint (sql.ts). */
const AMOUNT =
  /^(usage|usageLimit|reserved|reservation|cost|costHigh|costLow|periodUsageLimit|currentPeriodUsage|currentPeriodReserved)$/;

describe('the schema', () => {
  test('has only strict tables', () => {
    const db = open(newPath(), { create: true });
    const loose = db.connection
      .prepare(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'",
      )
      .pluck();
    expect(loose.all()).toEqual([]);
  });

  test('knows money by its columns, which are all integers', () => {
    const db = open(newPath(), { create: true });
    const columns = db.connection.prepare<[], { table: string; name: string; type: string }>(
      `SELECT tables.name AS "table", columns.name, columns.type FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns
       WHERE tables.schema = 'main' AND tables.type = 'table' ORDER BY 1, 2`,
    );
    const money = columns.all().filter(({ name }) => AMOUNT.test(name));
    expect(money.map(({ table, name }) => `${table}.${name}`)).toEqual([
      'budgets.currentPeriodReserved',
      'budgets.currentPeriodUsage',
      'budgets.periodUsageLimit',
      'budgets.reserved',
      'budgets.usage',
      'budgets.usageLimit',
      'kept_usage.costHigh',
      'kept_usage.costLow',
      'keys.currentPeriodReserved',
      'keys.currentPeriodUsage',
      'keys.periodUsageLimit',
      'keys.reserved',
      'keys.usage',
      'keys.usageLimit',
      'ledger.cost',
      'ledger.reservation',
    ]);
    expect(new Set(money.map(({ type }) => type))).toEqual(new Set(['INTEGER']));
  });
});

describe('a transaction', () => {
  test('undoes everything when its work throws, and lets what was thrown pass', () => {
    const db = open(newPath(), { create: true });
    expect(() =>
      db.transaction(() => {
        insertOrganization(db, { id: 'org_1', name: 'Acme' }, 5);
        throw new RangeError('Enough.');
      }),
    ).toThrow(new RangeError('Enough.'));
    expect([listOrganizations(db), db.connection.inTransaction]).toEqual([[], false]);
  });
});
