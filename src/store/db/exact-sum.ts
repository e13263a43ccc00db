import { sql } from 'kysely';

/** SQLite's sum of integers fails beyond 64 bits, and two of the largest amounts are beyond: they are added up in two halves. */
const HALF = 1_000_000_000n;

/** The two columns of an exact sum of amounts, `<prefix>High` and `<prefix>Low`; `sumOf` puts them together. */
export const exactSum = <Prefix extends string>(column: string, prefix: Prefix) =>
  [
    sql<bigint>`coalesce(sum(${sql.ref(column)} / ${sql.raw(String(HALF))}), 0)`.as(`${prefix}High`),
    sql<bigint>`coalesce(sum(${sql.ref(column)} % ${sql.raw(String(HALF))}), 0)`.as(`${prefix}Low`),
  ] as const;

export const sumOf = (high: bigint, low: bigint): bigint => high * HALF + low;
