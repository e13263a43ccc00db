import { sql } from 'kysely';
import { dayOfNumber, numbersFrom, timeOfNumber } from '../../domain/id.ts';
import { HOUR } from '../../domain/time.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { forgetBlock } from './call-index.ts';
import { dropMarks, forgettable } from './call-seals.ts';
import { CALL_STATES } from './statements.ts';
import { countedModel, KEPT_SUMS, usageSums } from './usage-sums.ts';

const isOver = sql<boolean>`state <> ${sql.lit(CALL_STATES.open)}`;

/**
 * Deletes the oldest calls that began before a time, with their decisions, and adds them to the sums of their hour, from which usage
 * reports go on. Sums and windows of keys are rows of their own, and the audit log is another table: neither looks at old calls. Open
 * calls stay, and those whose block is not given up (call-seals.ts). @param before epoch ms, the begin of an hour: so no hour is part calls, part sums. @param limit how many at most
 * @returns how many
 */
export function forgetCalls(db: Database, before: number, limit: number): number {
  const old = build.selectFrom('ledger').where(isOver).orderBy('number').select('number');
  const { last, open } = forgettable(db);
  const sealed = old.where('number', '<=', last).where('number', 'not in', open);
  const oldest = db.get(sealed.where('number', '<', numbersFrom(before)).limit(1));
  if (oldest === undefined) return 0;
  const time = timeOfNumber(oldest.number);
  const hour = time - (time % HOUR);
  const end = Math.min(numbersFrom(hour + HOUR), last + 1);
  const ofHour = sealed.where('number', '>=', oldest.number).where('number', '<', end);
  const beyond = db.get(ofHour.limit(1).offset(limit))?.number ?? end;
  return db.transaction(() => {
    keepSums(db, hour, oldest.number, beyond, open);
    return db.run(
      build
        .deleteFrom('ledger')
        .where('number', '>=', oldest.number)
        .where('number', '<', beyond)
        .where('number', 'not in', open)
        .where(isOver),
    );
  });
}

/** Adds the calls of an hour, from one number to before another, to what is kept of it. @param stay calls that are not deleted */
function keepSums(db: Database, hour: number, first: number, end: number, stay: readonly number[]): void {
  const byWhom = ['organizationId', 'projectId', 'keyId', 'memberId'] as const;
  const providerId = sql<string>`coalesce(providerId, '')`;
  db.run(
    build
      .insertInto('kept_usage')
      .columns(['hour', ...byWhom, 'modelId', 'providerId', ...KEPT_SUMS])
      .expression(
        build
          .selectFrom('calls')
          .select([sql<number>`${sql.lit(hour)}`.as('hour'), ...byWhom])
          .select([countedModel.as('modelId'), providerId.as('providerId')])
          .select(usageSums)
          .where('number', '>=', first)
          .where('number', '<', end)
          .where('number', 'not in', stay)
          .where('state', '<>', 'open')
          .groupBy([...byWhom, countedModel, providerId]),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['organizationId', 'hour', 'projectId', 'keyId', 'memberId', 'modelId', 'providerId'])
          .doUpdateSet(({ ref }) =>
            Object.fromEntries(
              KEPT_SUMS.map((column) => [column, sql`${ref(`kept_usage.${column}`)} + ${ref(`excluded.${column}`)}`]),
            ),
          ),
      ),
  );
}

/** Verdicts before the documents that they refer to. */
const REFERRED_TO = ['call_verdicts', 'data_documents', 'call_origins', 'call_targets'] as const;

/**
 * Deletes rows to which no call refers any more (call-index.ts, references.ts): those whose last day is over for the oldest call that is left, and for
 * every call to come. @param before epoch ms: what is older was deleted @param limit how many at most @returns how many
 */
export function forgetReferences(db: Database, before: number, limit: number): number {
  const oldest = db.get(build.selectFrom('ledger').orderBy('number').select('number').limit(1));
  const kept = Math.min(oldest?.number ?? Number.POSITIVE_INFINITY, numbersFrom(before));
  dropMarks(db, kept);
  const indexed = forgetBlock(db, kept);
  if (indexed > 0) return indexed;
  const day = dayOfNumber(kept);
  for (const table of REFERRED_TO) {
    const over = build.selectFrom(table).select('id').where('usedOn', '<', day).limit(limit);
    const deleted = db.run(build.deleteFrom(table).where('id', 'in', over));
    if (deleted > 0) return deleted;
  }
  return 0;
}
