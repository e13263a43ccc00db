import { hash } from 'node:crypto';
import type BetterSqlite3 from 'better-sqlite3';
import { build, prepare } from './sql.ts';

/** A row that a change touched, with its digests before and after; null: it was not there, or is not any more. */
export type TouchedRow = readonly [table: string, key: string, before: string | null, after: string | null];

interface SealedTable {
  readonly key: readonly string[];
  /** Columns in which calls and jobs count. */
  readonly counted?: readonly string[];
}

const SPENT = ['usage', 'reserved', 'currentPeriodUsage', 'currentPeriodReserved', 'currentPeriodStartedAt'];

/**
 * The state that decides on access and limits, by its tables. A column that a later migration adds must be null in the rows that are
 * there, or be counted.
 */
const SEALED = new Map<string, SealedTable>(
  Object.entries({
    organizations: { key: ['id'], counted: ['ruleRevision'] },
    projects: { key: ['id'] },
    members: { key: ['id'] },
    master_keys: { key: ['id'], counted: ['lastUsedAt'] },
    passkeys: { key: ['id'], counted: ['counter', 'lastUsedAt'] },
    groups: { key: ['id'] },
    group_holders: { key: ['groupId', 'holderId'] },
    keys: { key: ['id'], counted: [...SPENT, 'lastUsedAt'] },
    budgets: { key: ['subjectId'], counted: SPENT },
    subject_rules: { key: ['subjectId'] },
    compiled_parts: { key: ['id'] },
    rules: { key: ['id'], counted: ['wouldDeny', 'wouldAllow', 'lastSeenAt'] },
    rule_parts: { key: ['id'] },
    custom_providers: { key: ['id'] },
    custom_models: { key: ['id'] },
    provider_keys: { key: ['id'] },
    tag_sets: { key: ['id'] },
    aliases: { key: ['id'] },
  }),
);

const TABLES = [...SEALED.keys()];

/** A row's key, and the text that its digest is over: an object without the columns that are null. */
interface RowText {
  readonly key: string;
  readonly text: string;
}

const digestOf = (text: string): string => hash('sha256', text, 'base64url');

/** Rows in one entry of the audit log. */
const AT_ONCE = 2000;

/** The columns of a table that are sealed, in its own order. */
function columnsOf(connection: BetterSqlite3.Database, table: string): string[] {
  const counted = SEALED.get(table)?.counted ?? [];
  const names = connection.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
  return names.filter((name) => !counted.includes(name));
}

const keyOf = (table: string, row: string): string =>
  (SEALED.get(table)?.key ?? []).map((column) => `CAST(${row}"${column}" AS TEXT)`).join(` || ' ' || `);

/** A condition on the parts of a key, by the primary key. */
const found = (table: string): string => {
  const [first = '', second] = SEALED.get(table)?.key ?? [];
  if (second === undefined) return `"${first}" = :key`;
  return `"${first}" = substr(:key, 1, instr(:key, ' ') - 1) AND "${second}" = substr(:key, instr(:key, ' ') + 1)`;
};

const textOf = (columns: readonly string[], row: string): string =>
  `json_patch('{}', json_object(${columns.map((name) => `'${name}', ${row}"${name}"`).join(', ')}))`;

/** Digests of the rows of each sealed table as they are, by their keys. */
export function* stateDigests(
  connection: BetterSqlite3.Database,
): Generator<{ readonly table: string; readonly key: string; readonly digest: string }> {
  for (const table of TABLES) {
    const columns = columnsOf(connection, table);
    const select = `SELECT ${keyOf(table, '')} AS key, ${textOf(columns, '')} AS text FROM "${table}"`;
    for (const { key, text } of connection.prepare<[], RowText>(select).iterate()) {
      yield { table, key, digest: digestOf(text) };
    }
  }
}

const anySealed = build.selectFrom('audit').select('seq').where('stateJson', 'is not', null).limit(1);

interface Touched {
  readonly table: string;
  readonly key: string;
  /** Null: it was not there. */
  readonly before: string | null;
}

/**
 * Learns by temporary triggers which rows this connection touches, so that the entry of the change seals them. Triggers of the database
 * itself would also tell of what others do to it, and that must not be sealed.
 */
export class StateWatch {
  readonly #connection: BetterSqlite3.Database;
  /** A field: a call asks for its size, and runs nothing here. */
  readonly touched: Map<string, Touched> = new Map();
  readonly #selects = new Map<string, BetterSqlite3.Statement<[{ readonly key: string }], string>>();

  constructor(connection: BetterSqlite3.Database) {
    this.#connection = connection;
    connection.function('row_touched', (table: string, key: string, before: string | null) => {
      const place = `${table} ${key}`;
      if (!this.touched.has(place)) this.touched.set(place, { table, key, before });
      return null;
    });
    connection.exec(TABLES.map((table) => this.#triggersOf(table)).join(''));
  }

  /** Rows that were touched since the last time and are not as they were. */
  take(): TouchedRow[] {
    const rows = [...this.touched.values()].map(({ table, key, before }): TouchedRow => {
      const after = this.#selects.get(table)?.get({ key });
      return [table, key, before === null ? null : digestOf(before), after === undefined ? null : digestOf(after)];
    });
    this.touched.clear();
    return rows.filter(([, , before, after]) => before !== after);
  }

  /** The transaction was undone. */
  forget(): void {
    this.touched.clear();
  }

  /** All rows, if the audit log seals none yet: the database is of an earlier version. */
  *unsealed(): Generator<TouchedRow[]> {
    if (prepare(this.#connection, anySealed.compile()).get({}) !== undefined) return;
    const rows = [...stateDigests(this.#connection)];
    for (let at = 0; at < rows.length; at += AT_ONCE) {
      yield rows.slice(at, at + AT_ONCE).map(({ table, key, digest }): TouchedRow => [table, key, null, digest]);
    }
  }

  #triggersOf(table: string): string {
    const columns = columnsOf(this.#connection, table);
    const select = `SELECT ${textOf(columns, '')} FROM "${table}" WHERE ${found(table)}`;
    this.#selects.set(table, this.#connection.prepare<[{ readonly key: string }], string>(select).pluck());
    const told = (row: string, text: string): string =>
      `BEGIN SELECT row_touched('${table}', ${keyOf(table, row)}, ${text}); END;\n`;
    const names = columns.map((name) => `"${name}"`).join(', ');
    return [
      `CREATE TEMP TRIGGER ${table}_insert_seen AFTER INSERT ON main."${table}" ${told('NEW.', 'NULL')}`,
      `CREATE TEMP TRIGGER ${table}_update_seen AFTER UPDATE OF ${names} ON main."${table}" ${told('OLD.', textOf(columns, 'OLD.'))}`,
      `CREATE TEMP TRIGGER ${table}_delete_seen AFTER DELETE ON main."${table}" ${told('OLD.', textOf(columns, 'OLD.'))}`,
    ].join('');
  }
}
