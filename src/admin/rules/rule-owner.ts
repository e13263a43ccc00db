import { checkTakesRules } from '../../domain/api-key.ts';
import { notFound, permissionDenied } from '../../domain/errors.ts';
import type { Scope } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import type { Role } from '../../store/db/tables.ts';
import { findSubjectOfRule, listRuledSubjects, type RuledSubject } from '../../store/rules/rules.ts';
import { getGroup } from '../../store/tenants/group-records.ts';
import { getKey, type KeyRecord } from '../../store/tenants/key-records.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, checkChangesRulesOf, checkManagesOrganization, checkSeesKeyOf } from '../audit/audit-trail.ts';

/** The owner of rules: a key or a group by its id, a member by membership id or e-mail, or the actor's organization. */
export type RuleOwner =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'member'; readonly member: string }
  | { readonly kind: 'group'; readonly group: string }
  | { readonly kind: 'organization' };

/** The owner as it was found; the name is a key's description, a member's e-mail, or that of a group or the organization. */
export type RuleSubject =
  | { readonly scope: 'key'; readonly id: string; readonly name: string; readonly key: KeyRecord }
  | { readonly scope: 'member'; readonly id: string; readonly name: string; readonly role: Role }
  | { readonly scope: 'group' | 'organization'; readonly id: string; readonly name: string };

/** Lookups for the owners of one scope. */
interface OwnersOf<Kind extends Scope> {
  /** @throws ApiError 404 when there is none, 403 when the actor may not see it */
  readonly find: (db: Database, actor: Actor, owner: Extract<RuleOwner, { kind: Kind }>) => RuleSubject;
  readonly byId: (id: string) => RuleOwner;
}

const OWNERS: { readonly [Kind in Scope]: OwnersOf<Kind> } = {
  key: {
    find(db, actor, owner) {
      const key = getKey(db, actor.organizationId, owner.key);
      checkSeesKeyOf(actor, key.createdBy);
      return { scope: 'key', id: key.id, name: key.description, key };
    },
    byId: (key) => ({ kind: 'key', key }),
  },
  member: {
    find(db, actor, owner) {
      checkManagesOrganization(actor);
      const member = getMember(db, actor.organizationId, owner.member);
      return { scope: 'member', id: member.id, name: member.email, role: member.role };
    },
    byId: (member) => ({ kind: 'member', member }),
  },
  group: {
    find(db, actor, owner) {
      checkManagesOrganization(actor);
      const { id, name } = getGroup(db, actor.organizationId, owner.group);
      return { scope: 'group', id, name };
    },
    byId: (group) => ({ kind: 'group', group }),
  },
  organization: {
    find(db, actor) {
      checkManagesOrganization(actor);
      const { id, name } = getOrganization(db, actor.organizationId);
      return { scope: 'organization', id, name };
    },
    byId: () => ({ kind: 'organization' }),
  },
};

/** The owner of rules that the actor may see; 404 when there is none, 403 when they may not see it. */
export const getRuleSubject = <Kind extends Scope>(
  db: Database,
  actor: Actor,
  owner: Extract<RuleOwner, { kind: Kind }>,
): RuleSubject => OWNERS[owner.kind].find(db, actor, owner);

/** Throws 403 unless the actor may change this subject's rules, and the subject takes any. */
export function checkRulesChangeable(actor: Actor, subject: RuleSubject): void {
  if (subject.scope === 'member') checkChangesRulesOf(actor, subject.role);
  if (subject.scope !== 'key') return;
  checkTakesRules(subject.key);
  if (subject.key.kind === 'platform_secret') throw permissionDenied('A platform key cannot be given rules.');
}

const toOwner = ({ id, scope }: RuledSubject): RuleOwner => OWNERS[scope].byId(id);

/** The owner of a rule that is known by its id alone; 404 when the organization has no such rule. */
export function getRuleOwner(db: Database, { organizationId }: Actor, ruleId: string): RuleOwner {
  const subject = findSubjectOfRule(db, organizationId, ruleId);
  if (subject === undefined) throw notFound('There is no such rule.');
  return toOwner(subject);
}

/**
 * Everyone in the organization who has rules: itself, present groups and members, keys that are not deleted.
 * @param managedBy only those who have rules that this policy folder states, or, if null, rules that none does
 */
export const listRuleOwners = (db: Database, { organizationId }: Actor, managedBy?: string | null): RuleOwner[] =>
  listRuledSubjects(db, organizationId, managedBy).map(toOwner);
