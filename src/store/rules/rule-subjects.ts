import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { Scope } from '../db/tables.ts';

/** A key, a member or an organization that has rules. */
export interface RuledSubject {
  readonly id: string;
  readonly scope: Scope;
}

/** Whose rule this is; undefined when the organization has none of that id. */
export const findSubjectOfRule = (db: Database, organizationId: string, ruleId: string): RuledSubject | undefined =>
  db.get(
    build
      .selectFrom('rules')
      .select(['subject_id as id', 'scope'])
      .where('organization_id', '=', organizationId)
      .where('id', '=', ruleId),
  );

/** Everyone in the organization who has rules: itself, present members, keys that are not deleted. At most one row each. */
export const listRuledSubjects = (db: Database, organizationId: string): RuledSubject[] =>
  db.all(
    build
      .selectFrom('rules')
      .leftJoin('keys', (join) =>
        join.onRef('keys.id', '=', 'rules.subject_id').onRef('keys.organization_id', '=', 'rules.organization_id'),
      )
      .leftJoin('members', (join) =>
        join
          .onRef('members.id', '=', 'rules.subject_id')
          .onRef('members.organization_id', '=', 'rules.organization_id'),
      )
      .select(['rules.subject_id as id', 'rules.scope'])
      .distinct()
      .where('rules.organization_id', '=', organizationId)
      .where('keys.deleted_at', 'is', null)
      .where('members.removed_at', 'is', null)
      .orderBy('rules.scope', 'desc')
      .orderBy('rules.subject_id'),
  );
