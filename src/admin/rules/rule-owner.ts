import { checkTakesRules } from '../../domain/api-key.ts';
import { notFound, permissionDenied } from '../../domain/errors.ts';
import type { Database } from '../../store/db/database.ts';
import type { Role } from '../../store/db/tables.ts';
import { findSubjectOfRule, listRuledSubjects, type RuledSubject } from '../../store/rules/rule-subjects.ts';
import { getKey, type KeyRecord } from '../../store/tenants/keys.ts';
import { getMember } from '../../store/tenants/members.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, checkChangesRulesOf, checkManagesOrganization, checkSeesKeyOf } from '../audit/actor.ts';

/** Whose rules are meant: a key by its id, a member by membership id or e-mail, or the actor's organization. */
export type RuleOwner =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'member'; readonly member: string }
  | { readonly kind: 'organization' };

/** The owner as it was found; the name is a key's description, a member's e-mail, or the organization's name. */
export type RuleSubject =
  | { readonly scope: 'key'; readonly id: string; readonly name: string; readonly key: KeyRecord }
  | { readonly scope: 'member'; readonly id: string; readonly name: string; readonly role: Role }
  | { readonly scope: 'organization'; readonly id: string; readonly name: string };

/** The owner of rules that the actor may see; 404 when there is none, 403 when they may not see it. */
export function getRuleSubject(db: Database, actor: Actor, owner: RuleOwner): RuleSubject {
  const { organizationId } = actor;
  switch (owner.kind) {
    case 'key': {
      const key = getKey(db, organizationId, owner.key);
      checkSeesKeyOf(actor, key.createdBy);
      return { scope: 'key', id: key.id, name: key.description, key };
    }
    case 'member': {
      checkManagesOrganization(actor);
      const member = getMember(db, organizationId, owner.member);
      return { scope: 'member', id: member.id, name: member.email, role: member.role };
    }
    case 'organization':
      checkManagesOrganization(actor);
      return { scope: 'organization', id: organizationId, name: getOrganization(db, organizationId).name };
  }
}

/** Throws 403 unless the actor may change this subject's rules, and the subject takes any. */
export function checkRulesChangeable(actor: Actor, subject: RuleSubject): void {
  if (subject.scope === 'member') checkChangesRulesOf(actor, subject.role);
  if (subject.scope !== 'key') return;
  checkTakesRules(subject.key);
  if (subject.key.kind === 'platform_secret') throw permissionDenied('A platform key cannot be given rules.');
}

function toOwner({ id, scope }: RuledSubject): RuleOwner {
  switch (scope) {
    case 'key':
      return { kind: 'key', key: id };
    case 'member':
      return { kind: 'member', member: id };
    case 'organization':
      return { kind: 'organization' };
  }
}

/** Whose rule this is, for who knows its id alone; 404 when the organization has none of that id. */
export function getRuleOwner(db: Database, { organizationId }: Actor, ruleId: string): RuleOwner {
  const subject = findSubjectOfRule(db, organizationId, ruleId);
  if (subject === undefined) throw notFound('There is no such rule.');
  return toOwner(subject);
}

/** Everyone in the organization who has rules: itself, present members, keys that are not deleted. */
export const listRuleOwners = (db: Database, { organizationId }: Actor): RuleOwner[] =>
  listRuledSubjects(db, organizationId).map(toOwner);
