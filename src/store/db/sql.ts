import type BetterSqlite3 from 'better-sqlite3';
import {
  type CompiledQuery,
  DummyDriver,
  type Expression,
  Kysely,
  type OperationNode,
  type RawBuilder,
  type SelectType,
  SqliteAdapter,
  SqliteQueryCompiler,
  sql,
  ValueNode,
} from 'kysely';
import type { Flag } from './call-tables.ts';
import type { Tables } from './tables.ts';

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

export type SqlValue = string | number | bigint | Buffer | null;

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
type AmountColumn = { [Name in keyof Tables]: AmountIn<Tables[Name]> }[keyof Tables];

const AMOUNTS: Readonly<Record<AmountColumn, true>> = {
  usageLimit: true,
  usage: true,
  reserved: true,
  periodUsageLimit: true,
  currentPeriodUsage: true,
  currentPeriodReserved: true,
  reservation: true,
  cost: true,
  costHigh: true,
  costLow: true,
};

/** The halves of a sum (`exactSum`) are amounts too. */
const HALF_OF_SUM = /(?:High|Low)$/;

const isAmount = (column: string): boolean => Object.hasOwn(AMOUNTS, column) || HALF_OF_SUM.test(column);

/** Integers arrive as BigInt, because a plain read rounds silently above 2^53. Only amounts may be that large, and stay BigInt. */
function narrowingIntegers<R>(): (row: R) => R {
  let columns: readonly string[] | undefined;
  return (row) => {
    if (typeof row !== 'object' || row === null) return row;
    columns ??= Object.keys(row).filter((column) => !isAmount(column));
    for (const column of columns) {
      const value: unknown = Reflect.get(row, column);
      if (typeof value === 'bigint') Reflect.set(row, column, Number(value));
    }
    return row;
  };
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
  const narrow = narrowingIntegers<R>();
  return {
    run: (values) => statement.run(arrange(values)).changes,
    get: (values) => {
      const row = statement.get(arrange(values));
      return row === undefined ? undefined : narrow(row);
    },
    all: (values) => statement.all(arrange(values)).map(narrow),
  };
}

/** A value's place in a statement of the hot path, where it may occur more than once. */
export class Parameter<T extends SqlValue> implements Expression<T> {
  get expressionType(): T | undefined {
    return undefined;
  }

  toOperationNode(): OperationNode {
    return ValueNode.create(this);
  }
}

type ValuesOf<Places extends readonly Parameter<SqlValue>[]> = {
  [Index in keyof Places]: Places[Index] extends Parameter<infer T> ? T : never;
};

/** A statement of the hot path: its values come in the order of its places, and no object is made of them. */
interface HotStatement<Values extends readonly SqlValue[], R> {
  /** Number of rows changed. */
  run(...values: Values): number;
  get(...values: Values): R | undefined;
  all(...values: Values): R[];
}

/** @throws Error when the query has a place that `places` does not name, or lacks one of them */
export function prepareHot<const Places extends readonly Parameter<SqlValue>[], R>(
  connection: BetterSqlite3.Database,
  places: Places,
  query: CompiledQuery<R>,
): HotStatement<ValuesOf<Places>, R> {
  const order = query.parameters.map((value) => (value instanceof Parameter ? places.indexOf(value) : -1));
  if (order.includes(-1) || new Set(order).size < places.length)
    throw new Error(`Not each value has a place: ${query.sql}`);
  const inOrder = order.length === places.length && order.every((from, index) => from === index);
  const arrange = (values: readonly SqlValue[]): readonly SqlValue[] =>
    inOrder ? values : order.map((from) => values[from] ?? null);
  const statement = connection.prepare<SqlValue[], R>(query.sql);
  if (statement.reader) statement.safeIntegers(true);
  const narrow = narrowingIntegers<R>();
  return {
    // Spread: reading them out of an array costs the binding more.
    run: (...values) => statement.run(...arrange(values)).changes,
    get: (...values) => {
      const row = statement.get(...arrange(values));
      return row === undefined ? undefined : narrow(row);
    },
    all: (...values) => statement.all(...arrange(values)).map(narrow),
  };
}

/** SQLite's sum of integers fails beyond 64 bits, and two of the largest amounts are beyond: they are added up in two halves. */
const HALF = 1_000_000_000n;

/** The two columns of an exact sum of amounts, `<prefix>High` and `<prefix>Low`; `sumOf` puts them together. */
export const exactSum = <Prefix extends string>(column: string, prefix: Prefix) =>
  [
    sql<bigint>`coalesce(sum(${sql.ref(column)} / ${sql.raw(String(HALF))}), 0)`.as(`${prefix}High`),
    sql<bigint>`coalesce(sum(${sql.ref(column)} % ${sql.raw(String(HALF))}), 0)`.as(`${prefix}Low`),
  ] as const;

export const sumOf = (high: bigint, low: bigint): bigint => high * HALF + low;
