import { randomBytes } from 'node:crypto';
import { type Expression, type SqlBool, sql } from 'kysely';
import { newId } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** Whose playground keys: of one member, of one project, or of both together. */
export type PlaygroundKeyOwners =
  | { readonly memberId: string; readonly projectId?: string }
  | { readonly memberId?: string; readonly projectId: string };

/** What every playground key is called; its owner and its project tell it from the others. */
export const PLAYGROUND = 'Playground';

/** Rows in one statement: SQLite takes 32,766 values. */
const CHUNK = 500;

/**
 * Adds the playground keys that present members lack in the organization's projects. They have no secret: what stands in the
 * place of its hash is random, so nobody, the server included, can ever present one.
 */
export function addPlaygroundKeys(
  db: Database,
  organizationId: string,
  owners: PlaygroundKeyOwners,
  now: number,
): void {
  db.transaction(() => {
    const rows = missing(db, organizationId, owners).map((pair) => ({
      ...pair,
      id: newId('key'),
      organizationId,
      description: PLAYGROUND,
      kind: 'playground' as const,
      secretHash: randomBytes(32).toString('hex'),
      pepperId: 'none',
      mask: 'none',
      createdAt: now,
      updatedAt: now,
    }));
    for (let start = 0; start < rows.length; start += CHUNK) {
      const chunk = rows.slice(start, start + CHUNK);
      const subjects = chunk.map(({ id }) => ({ subjectId: id, organizationId, scope: 'key' as const }));
      db.run(build.insertInto('keys').values(chunk));
      db.run(build.insertInto('subject_rules').values(subjects));
    }
  });
}

/** Every pair of a present member and a project that is not deleted, where it has no playground key. */
function missing(db: Database, organizationId: string, { memberId, projectId }: PlaygroundKeyOwners) {
  const query = build
    .selectFrom('members')
    .innerJoin('projects', 'projects.organizationId', 'members.organizationId')
    .select(['members.id as createdBy', 'projects.id as projectId'])
    .where('members.organizationId', '=', organizationId)
    .where('members.removedAt', 'is', null)
    .where('projects.deletedAt', 'is', null)
    .where(
      ({ not, exists, selectFrom }): Expression<SqlBool> =>
        not(
          exists(
            selectFrom('keys')
              .select('keys.id')
              .whereRef('keys.organizationId', '=', 'members.organizationId')
              .whereRef('keys.createdBy', '=', 'members.id')
              .whereRef('keys.projectId', '=', 'projects.id')
              // A literal: SQLite uses the index of playground keys for no bound value.
              .where('keys.kind', '=', sql.lit('playground'))
              .where('keys.deletedAt', 'is', null),
          ),
        ),
    )
    .orderBy('members.id')
    .orderBy('projects.id');
  const ofMember = memberId === undefined ? query : query.where('members.id', '=', memberId);
  return db.all(projectId === undefined ? ofMember : ofMember.where('projects.id', '=', projectId));
}
