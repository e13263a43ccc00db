import type BetterSqlite3 from 'better-sqlite3';
import {
  type CompiledQuery,
  DummyDriver,
  Kysely,
  type RawBuilder,
  type SelectType,
  SqliteAdapter,
  SqliteQueryCompiler,
  sql,
} from 'kysely';
import type { Flag, Tables } from './tables.ts';

/** Builds and types SQL; never runs it. What it compiles is run synchronously by better-sqlite3. */
export const build = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: () => {
      throw new Error('The query builder has no database to look into.');
    },
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

export type SqlValue = string | number | bigint | null;

class Placeholder {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A value to be given each time a prepared statement runs. */
export const bind = <T extends SqlValue>(name: string): RawBuilder<T> => sql<T>`${new Placeholder(name)}`;

export const toFlag = (value: boolean): Flag => (value ? 1 : 0);

type AmountIn<Table> = {
  [Column in keyof Table]: bigint extends SelectType<Table[Column]> ? Column : never;
}[keyof Table];

/** Every column of an amount, by the types of the tables. */
type AmountColumn = Exclude<{ [Name in keyof Tables]: AmountIn<Tables[Name]> }[keyof Tables], `${string}_pico`>;

const AMOUNTS: Readonly<Record<AmountColumn, true>> = {
  usageLimit: true,
  usage: true,
  reserved: true,
  periodUsageLimit: true,
  currentPeriodUsage: true,
  currentPeriodReserved: true,
};

const isAmount = (column: string): boolean => column.endsWith('_pico') || Object.hasOwn(AMOUNTS, column);

/**
 * Integers arrive as BigInt, because a plain read rounds silently above 2^53. Only money may be that large: columns of amounts, and
 * all that end in `_pico`, stay BigInt, all others become numbers.
 */
function narrowIntegers<R>(row: R): R {
  if (typeof row !== 'object' || row === null) return row;
  for (const [column, value] of Object.entries(row)) {
    if (typeof value === 'bigint' && !isAmount(column)) Reflect.set(row, column, Number(value));
  }
  return row;
}

/** A statement prepared once and run many times with named values. */
export interface PreparedStatement<R> {
  /** Number of rows changed. */
  run(values: Readonly<Record<string, SqlValue>>): number;
  get(values: Readonly<Record<string, SqlValue>>): R | undefined;
  all(values: Readonly<Record<string, SqlValue>>): R[];
}

export function prepare<R>(connection: BetterSqlite3.Database, query: CompiledQuery<R>): PreparedStatement<R> {
  const statement = connection.prepare<[readonly unknown[]], R>(query.sql).safeIntegers(true);
  const arrange = (values: Readonly<Record<string, SqlValue>>): readonly unknown[] =>
    query.parameters.map((parameter) => {
      if (!(parameter instanceof Placeholder)) return parameter;
      const value = values[parameter.name];
      if (value === undefined) throw new TypeError(`No value was given for ${parameter.name}.`);
      return value;
    });
  return {
    run: (values) => statement.run(arrange(values)).changes,
    get: (values) => {
      const row = statement.get(arrange(values));
      return row === undefined ? undefined : narrowIntegers(row);
    },
    all: (values) => statement.all(arrange(values)).map(narrowIntegers),
  };
}
