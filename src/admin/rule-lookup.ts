import { notFound } from '../domain/errors.ts';
import type { Database } from '../store/database.ts';
import { build } from '../store/sql.ts';
import type { Scope } from '../store/tables.ts';
import type { Actor } from './actor.ts';
import type { RuleOwner } from './rule-owner.ts';

const toOwner = ({ subject_id: id, scope }: { subject_id: string; scope: Scope }): RuleOwner =>
  scope === 'key'
    ? { kind: 'key', key: id }
    : scope === 'member'
      ? { kind: 'member', member: id }
      : { kind: 'organization' };

/** Whose rule this is; 404 when the organization has none of that id. */
export function findRuleOwner(db: Database, { organizationId }: Actor, ruleId: string): RuleOwner {
  const row = db.get(
    build
      .selectFrom('rules')
      .select(['subject_id', 'scope'])
      .where('organization_id', '=', organizationId)
      .where('id', '=', ruleId),
  );
  if (row === undefined) throw notFound('There is no such rule.');
  return toOwner(row);
}

/** Everybody in the organization who has rules: itself, present members, keys that are not deleted. */
export function listRuleOwners(db: Database, { organizationId }: Actor): RuleOwner[] {
  const rows = db.all(
    build
      .selectFrom('rules')
      .leftJoin('keys', 'keys.id', 'rules.subject_id')
      .leftJoin('members', 'members.id', 'rules.subject_id')
      .select(['rules.subject_id', 'rules.scope'])
      .distinct()
      .where('rules.organization_id', '=', organizationId)
      .where('keys.deleted_at', 'is', null)
      .where('members.removed_at', 'is', null)
      .orderBy('rules.scope', 'desc')
      .orderBy('rules.subject_id'),
  );
  return rows.map(toOwner);
}
