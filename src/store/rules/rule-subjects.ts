import { sql } from 'kysely';
import type { Scope } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** A key, a member, a group or an organization that has rules. */
export interface RuledSubject {
  readonly id: string;
  readonly scope: Scope;
}

/** Whose rule this is; undefined when the organization has none of that id. */
export const findSubjectOfRule = (db: Database, organizationId: string, ruleId: string): RuledSubject | undefined =>
  db.get(
    build
      .selectFrom('rules')
      .select(['subjectId as id', 'scope'])
      .where('organizationId', '=', organizationId)
      .where('id', '=', ruleId),
  );

/**
 * Everyone in the organization who has rules: itself, present groups and members, keys that are not deleted. At most one row each.
 * @param managedBy only those who have rules that this policy folder states, or, if null, rules that none does
 */
export function listRuledSubjects(db: Database, organizationId: string, managedBy?: string | null): RuledSubject[] {
  const ruled = build
    .selectFrom('rules')
    .leftJoin('keys', (join) =>
      join.onRef('keys.id', '=', 'rules.subjectId').onRef('keys.organizationId', '=', 'rules.organizationId'),
    )
    .leftJoin('members', (join) =>
      join.onRef('members.id', '=', 'rules.subjectId').onRef('members.organizationId', '=', 'rules.organizationId'),
    )
    .leftJoin('groups', (join) =>
      join.onRef('groups.id', '=', 'rules.subjectId').onRef('groups.organizationId', '=', 'rules.organizationId'),
    )
    .select(['rules.subjectId as id', 'rules.scope'])
    .distinct()
    .where('rules.organizationId', '=', organizationId)
    .where('keys.deletedAt', 'is', null)
    .where('members.removedAt', 'is', null)
    .where('groups.deletedAt', 'is', null)
    .orderBy(sql`instr('organization group member key', rules.scope)`)
    .orderBy('rules.subjectId');
  return db.all(
    managedBy === undefined ? ruled : ruled.where('rules.managedBy', managedBy === null ? 'is' : '=', managedBy),
  );
}
