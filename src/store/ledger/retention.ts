import { sql } from 'kysely';
import { idsFrom, timeOfId } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { countedModel, KEPT_SUMS, usageSums } from './usage.ts';

const HOUR = 3_600_000;

/**
 * Deletes the oldest calls that began before a time, and adds them to the sums of their hour, from which usage reports go on. Sums and
 * windows of keys are rows of their own, and the audit log is another table: neither looks at old calls. Open calls stay.
 * @param before epoch ms, the begin of an hour: so no hour is part calls, part sums. @param limit how many at most @returns how many
 */
export function forgetCalls(db: Database, before: number, limit: number): number {
  const old = build.selectFrom('calls').where('state', '<>', sql.lit('open')).orderBy('id').select('id');
  const oldest = db.get(old.where('id', '<', idsFrom('call', before)).limit(1));
  if (oldest === undefined) return 0;
  const time = timeOfId(oldest.id);
  const hour = time - (time % HOUR);
  const end = idsFrom('call', hour + HOUR);
  const beyond = db.get(old.where('id', '>=', oldest.id).where('id', '<', end).limit(1).offset(limit))?.id ?? end;
  return db.transaction(() => {
    keepSums(db, hour, oldest.id, beyond);
    return db.run(
      build
        .deleteFrom('calls')
        .where('id', '>=', oldest.id)
        .where('id', '<', beyond)
        .where('state', '<>', sql.lit('open')),
    );
  });
}

/** Adds the calls of an hour, from one id to before another, to what is kept of it. */
function keepSums(db: Database, hour: number, first: string, end: string): void {
  const byWhom = ['organization_id', 'project_id', 'key_id', 'member_id'] as const;
  const providerId = sql<string>`coalesce(provider_id, '')`;
  db.run(
    build
      .insertInto('kept_usage')
      .columns(['hour', ...byWhom, 'model_id', 'provider_id', ...KEPT_SUMS])
      .expression(
        build
          .selectFrom('calls')
          .select([sql<number>`${sql.lit(hour)}`.as('hour'), ...byWhom])
          .select([countedModel.as('model_id'), providerId.as('provider_id')])
          .select(usageSums)
          .where('id', '>=', first)
          .where('id', '<', end)
          .where('state', '<>', sql.lit('open'))
          .groupBy([...byWhom, countedModel, providerId]),
      )
      .onConflict((conflict) =>
        conflict
          .columns(['organization_id', 'hour', 'project_id', 'key_id', 'member_id', 'model_id', 'provider_id'])
          .doUpdateSet(({ ref }) =>
            Object.fromEntries(
              KEPT_SUMS.map((column) => [column, sql`${ref(`kept_usage.${column}`)} + ${ref(`excluded.${column}`)}`]),
            ),
          ),
      ),
  );
}

/**
 * Deletes the oldest recorded decisions that were made before a time (epoch ms). The data documents that they saw stay: other
 * decisions may refer to them. @param limit how many at most @returns how many
 */
export const forgetDecisions = (db: Database, before: number, limit: number): number =>
  db.run(
    build
      .deleteFrom('decisions')
      .where(
        'id',
        'in',
        build.selectFrom('decisions').select('id').where('id', '<', idsFrom('dec', before)).orderBy('id').limit(limit),
      ),
  );
