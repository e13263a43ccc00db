import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { timeOfNumber } from './call-number.ts';
import { CALL_STATES } from './ledger-statements.ts';

/** A place in the ledger: each call up to a number was found over and read, except those that were open. */
export interface FollowPosition {
  readonly after: number;
  readonly open: readonly number[];
}

/** Calls that are over, each once. */
export interface Followed {
  readonly numbers: readonly number[];
  readonly position: FollowPosition;
  /** There may be more. */
  readonly isBehind: boolean;
}

const lastNumber = (db: Database): number =>
  db.get(build.selectFrom('ledger').select('number').orderBy('number', 'desc').limit(1))?.number ?? 0;

/** When the newest call was recorded, in epoch ms; 0: there is none. */
export const newestCallAt = (db: Database): number => timeOfNumber(lastNumber(db));

/** From here on: also those that are open now. */
export function positionNow(db: Database): FollowPosition {
  const after = lastNumber(db);
  const from = db.get(build.selectFrom('ledger_mark').select('openFrom'))?.openFrom ?? 0;
  const open = db.all(
    build
      .selectFrom('ledger')
      .select('number')
      .where('state', '=', CALL_STATES.open)
      .where('number', '>=', from)
      .where('number', '<=', after),
  );
  return { after, open: open.map(({ number }) => number) };
}

/** The calls that are over since a position. Not for the serving thread. @param limit how many further rows are looked at */
export function follow(db: Database, { after, open }: FollowPosition, limit: number): Followed {
  const select = build.selectFrom('ledger').select(['number', 'state']);
  const isWaitedFor = sql<boolean>`number IN (SELECT value FROM json_each(${JSON.stringify(open)}))`;
  const waitedFor = open.length === 0 ? [] : db.all(select.where(isWaitedFor));
  const further = db.all(select.where('number', '>', after).orderBy('number').limit(limit));
  const rows = [...waitedFor, ...further];
  const isOpen = ({ state }: (typeof rows)[number]): boolean => state === CALL_STATES.open;
  return {
    numbers: rows.filter((row) => !isOpen(row)).map(({ number }) => number),
    position: { after: further.at(-1)?.number ?? after, open: rows.filter(isOpen).map(({ number }) => number) },
    isBehind: further.length === limit,
  };
}

/** What was left out, and where it goes on. */
export interface Skipped {
  readonly decisions: number;
  readonly position: FollowPosition;
}

/** Leaves out the oldest calls of which more than `most` are waiting; undefined where there are no more. */
export function skipOldest(db: Database, { after, open }: FollowPosition, most: number): Skipped | undefined {
  const waiting = build.selectFrom('ledger').where('number', '>', after);
  const last = db.get(waiting.select('number').orderBy('number', 'desc').limit(1).offset(most));
  if (last === undefined) return undefined;
  const skipped = waiting.where('number', '<=', last.number).where('verdict', 'is not', null);
  const decisions = db.get(skipped.select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0;
  return { decisions, position: { after: last.number, open } };
}
