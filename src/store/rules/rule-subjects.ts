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
      .select(['subjectId as id', 'scope'])
      .where('organizationId', '=', organizationId)
      .where('id', '=', ruleId),
  );

/** Everyone in the organization who has rules: itself, present members, keys that are not deleted. At most one row each. */
export const listRuledSubjects = (db: Database, organizationId: string): RuledSubject[] =>
  db.all(
    build
      .selectFrom('rules')
      .leftJoin('keys', (join) =>
        join.onRef('keys.id', '=', 'rules.subjectId').onRef('keys.organizationId', '=', 'rules.organizationId'),
      )
      .leftJoin('members', (join) =>
        join.onRef('members.id', '=', 'rules.subjectId').onRef('members.organizationId', '=', 'rules.organizationId'),
      )
      .select(['rules.subjectId as id', 'rules.scope'])
      .distinct()
      .where('rules.organizationId', '=', organizationId)
      .where('keys.deletedAt', 'is', null)
      .where('members.removedAt', 'is', null)
      .orderBy('rules.scope', 'desc')
      .orderBy('rules.subjectId'),
  );
