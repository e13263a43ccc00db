import { sql } from 'kysely';
import { timeOfNumber } from '../../domain/id.ts';
import type { PolicyShadow } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { CALL_STATES } from './statements.ts';

/** A place in the ledger: each call up to a number was found over and read, except those that were open. */
export interface FollowPosition {
  readonly after: number;
  readonly open: readonly number[];
}

/** Calls that are over, each once. */
interface FollowedCalls {
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
export function follow(db: Database, { after, open }: FollowPosition, limit: number): FollowedCalls {
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

/** Calls that were left out, and the position to go on from. */
interface SkippedCalls {
  readonly decisions: number;
  readonly position: FollowPosition;
}

/** Leaves out the oldest calls of which more than `most` are waiting; undefined where there are no more. */
export function skipOldest(db: Database, { after, open }: FollowPosition, most: number): SkippedCalls | undefined {
  const waiting = build.selectFrom('ledger').where('number', '>', after);
  const last = db.get(waiting.select('number').orderBy('number', 'desc').limit(1).offset(most));
  if (last === undefined) return undefined;
  const skipped = waiting.where('number', '<=', last.number).where('verdict', 'is not', null);
  const decisions = db.get(skipped.select(({ fn }) => fn.countAll<number>().as('count')))?.count ?? 0;
  return { decisions, position: { after: last.number, open } };
}

/** Rows of the ledger that are counted at once. */
const AT_ONCE = 16_384;

/** Number of decisions that name a rule in their shadow. */
interface ReportCount {
  readonly ruleId: string;
  /** The organization's rule revision by which they were made. */
  readonly revision: number;
  readonly wouldDeny: number;
  readonly wouldAllow: number;
  /** When the last of them was made, in epoch ms. */
  readonly lastSeenAt: number;
}

/** Report-rule counts of the calls that were not counted yet. */
export interface ReportCounts {
  /** The number of the last of these calls. */
  readonly counted: number;
  readonly rules: readonly ReportCount[];
  /** There may be more calls. */
  readonly isBehind: boolean;
}

const readMark = (db: Database): number => db.get(build.selectFrom('report_mark').select('counted'))?.counted ?? 0;

/** Whether there are calls that are not counted yet. */
export const hasUncounted = (db: Database): boolean =>
  db.get(build.selectFrom('ledger').select('number').where('number', '>', readMark(db)).limit(1)) !== undefined;

/** Whether they are to be counted: where no rule reports, none is, and they are passed over. */
export function passUnreported(db: Database): boolean {
  const reporting = build.selectFrom('rules').select('id').where('reportsSince', 'is not', null).limit(1);
  if (db.get(reporting) !== undefined) return true;
  const last = db.get(build.selectFrom('ledger').select(({ fn }) => fn.max<number | null>('number').as('number')));
  db.run(build.updateTable('report_mark').set({ counted: last?.number ?? 0 }));
  return false;
}

/** Calls that share a decision, up to the last of them. */
interface Uses {
  calls: number;
  last: number;
}

/** The next calls that are not counted yet; undefined where there are none. Reads each of them: not for the serving thread. */
export function nextReportCounts(db: Database): ReportCounts | undefined {
  const after = build.selectFrom('ledger').select(['number', 'verdict']).where('number', '>', readMark(db));
  const rows = db.all(after.orderBy('number').limit(AT_ONCE));
  const last = rows.at(-1);
  if (last === undefined) return undefined;
  const usesOf = new Map<number, Uses>();
  for (const { number, verdict } of rows) {
    if (verdict === null) continue;
    usesOf.set(verdict, { calls: (usesOf.get(verdict)?.calls ?? 0) + 1, last: number });
  }
  const isBehind = rows.length === AT_ONCE;
  return { counted: last.number, rules: countReports(db, usesOf), isBehind };
}

function countReports(db: Database, usesOf: ReadonlyMap<number, Uses>): ReportCount[] {
  const verdicts = db.all(
    build
      .selectFrom('call_verdicts')
      .select(['id', 'ruleRevision', 'shadowJson'])
      .where('id', 'in', [...usesOf.keys()])
      .where('shadowJson', 'is not', null),
  );
  const found = new Map<string, ReportCount>();
  for (const { id, ruleRevision: revision, shadowJson } of verdicts) {
    const { calls, last } = usesOf.get(id) ?? { calls: 0, last: 0 };
    const shadow: PolicyShadow = JSON.parse(shadowJson ?? '');
    const count = (ruleId: string, denies: boolean): void => {
      const key = `${ruleId} ${revision}`;
      const { wouldDeny = 0, wouldAllow = 0, lastSeenAt = 0 } = found.get(key) ?? {};
      found.set(key, {
        ruleId,
        revision,
        wouldDeny: wouldDeny + (denies ? calls : 0),
        wouldAllow: wouldAllow + (denies ? 0 : calls),
        lastSeenAt: Math.max(lastSeenAt, timeOfNumber(last)),
      });
    };
    for (const ruleId of shadow.would_deny) count(ruleId, true);
    for (const ruleId of shadow.would_allow) count(ruleId, false);
  }
  return [...found.values()];
}

/** Adds to the rules what `nextReportCounts` counted, but for those that say something else by now; nothing where it was added already. */
export function storeReportCounts(db: Database, { counted, rules }: ReportCounts): void {
  if (counted <= readMark(db)) return;
  for (const { ruleId, revision, wouldDeny, wouldAllow, lastSeenAt } of rules) {
    db.run(
      build
        .updateTable('rules')
        .set((row) => ({
          wouldDeny: row('wouldDeny', '+', wouldDeny),
          wouldAllow: row('wouldAllow', '+', wouldAllow),
          lastSeenAt: sql<number>`max(coalesce(lastSeenAt, 0), ${lastSeenAt})`,
        }))
        .where('id', '=', ruleId)
        .where('reportRevision', '<=', revision),
    );
  }
  db.run(build.updateTable('report_mark').set({ counted }));
}
