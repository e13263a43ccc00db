import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type DatabaseOptions, openDatabase } from '../../../src/store/db/database.ts';
import { columnNames, NEW_NAMES } from '../../../src/store/migrations/0012-column-names.ts';
import { MIGRATIONS } from '../../../src/store/migrations/migrations.ts';
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
    ['newer', MIGRATIONS.length + 1, 'use the newer version of Portcullis that made it'],
    ['older', MIGRATIONS.length - 1, 'start the server once to bring it up to date'],
  ])('a database of a %s schema is refused with the remedy', (_, version, remedy) => {
    const path = newPath();
    const other = new BetterSqlite3(path);
    other.exec('CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL, digest TEXT)');
    for (let i = 1; i <= version; i++) {
      other.prepare('INSERT INTO schema_version VALUES (?, 0, ?)').run(i, hash('sha256', MIGRATIONS[i - 1] ?? ''));
    }
    other.close();
    expect(() => openDatabase(path)).toThrow(
      `The database has schema version ${version}, this version of Portcullis needs ${MIGRATIONS.length}: ${remedy}.`,
    );
  });
});

describe('a database of a build between two versions', () => {
  test.each([
    ['made by another migration of the same number', "UPDATE schema_version SET digest = 'another'"],
    ['that kept no digests', 'ALTER TABLE schema_version DROP COLUMN digest'],
  ])('%s is refused by name, and not by an error of SQL', (_, change) => {
    const path = newPath();
    const made = openDatabase(path, { create: true });
    made.connection.exec(change);
    made.close();
    for (const create of [true, false]) {
      expect(() => openDatabase(path, { create })).toThrow(
        'The database was made by an unreleased version of Portcullis, whose tables differ: take another DATA_DIR, or that version.',
      );
    }
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

  test('has the names that ALTER TABLE gives the columns, index by index', () => {
    const earlier = MIGRATIONS.slice(0, MIGRATIONS.indexOf(columnNames)).join(';');
    const [renamed, altered] = [new BetterSqlite3(':memory:'), new BetterSqlite3(':memory:')];
    renamed.unsafeMode(true);
    for (const db of [renamed, altered]) db.exec(earlier);
    renamed.exec(columnNames);
    const columns = altered.prepare<[], { table: string; name: string }>(
      `SELECT tables.name AS "table", columns.name FROM pragma_table_list AS tables, pragma_table_info(tables.name) AS columns
       WHERE tables.schema = 'main' AND tables.name NOT IN ('calls', 'decisions', 'kept_usage', 'data_documents', 'sqlite_schema')`,
    );
    for (const { table, name } of columns.all()) {
      const after = NEW_NAMES.get(name);
      if (after !== undefined) altered.exec(`ALTER TABLE ${table} RENAME COLUMN ${name} TO ${after}`);
    }
    const schemaOf = (db: BetterSqlite3.Database) =>
      db.prepare('SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name').all();

    expect(schemaOf(renamed)).toEqual(schemaOf(altered));
    expect(columns.all().filter(({ name }) => name.includes('_'))).toEqual([]);
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
