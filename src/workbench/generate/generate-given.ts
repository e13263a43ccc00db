import { entriesOf, factsOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { FixtureGiven, FixtureRule, FixtureSubject } from '../../generated/types.ts';
import type { World, WorldKey, WorldMember, WorldOrganization } from '../world/world.ts';

/** A subject with rules, and those above it whose rules meet the same calls. */
export interface RuleHolder {
  readonly scope: 'organization' | 'member' | 'key';
  /** For people. */
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  readonly organization: WorldOrganization;
  readonly member?: WorldMember;
  readonly key?: WorldKey;
}

/** Of the key, the member or the organization. */
export const holderId = ({ key, member, organization }: RuleHolder): string => key?.id ?? member?.id ?? organization.id;

/** Everyone in the world who has rules; or a key, its owner and their organization. */
export function ruleHolders({ organizations, members, keys }: World, only?: WorldKey): RuleHolder[] {
  const owner = only === undefined ? undefined : members.get(only.memberId);
  return [...organizations.values()].flatMap((organization) => {
    const { id: organizationId } = organization;
    const ofKeys = [...keys.values()].filter((key) => key.organizationId === organizationId && (only ?? key) === key);
    const ofMembers = [...members.values()].filter(
      (member) => member.organizationId === organizationId && (owner ?? member) === member,
    );
    const holders: RuleHolder[] = [
      { scope: 'organization', name: organization.name, rules: organization.rules, organization },
      ...ofMembers.map((member) => ({
        scope: 'member' as const,
        name: member.email,
        rules: member.rules,
        organization,
        member,
      })),
      ...ofKeys.map((key) => {
        const member = members.get(key.memberId);
        return {
          scope: 'key' as const,
          name: key.description === '' ? key.id : key.description,
          rules: key.rules,
          organization,
          key,
          ...(member === undefined ? {} : { member }),
        };
      }),
    ];
    const concerned = only === undefined || only.organizationId === organizationId;
    return concerned ? holders.filter(({ rules }) => rules.length > 0) : [];
  });
}

/** The rules that a call meets of which this one's are the innermost. */
export const rulesAround = ({ organization, member, key }: RuleHolder): PolicyRule[] => [
  ...organization.rules,
  ...(member?.rules ?? []),
  ...(key?.rules ?? []),
];

/** What a fixture gives of a holder and those above it that have some of these rules. Keys go by their ids. */
export function subjectsGiven(
  { organization, member, key }: RuleHolder,
  rules: readonly PolicyRule[],
): Pick<FixtureGiven, 'organization' | 'members' | 'keys'> {
  const of = (all: readonly PolicyRule[]): FixtureSubject => {
    const kept = all.filter((rule) => rules.includes(rule));
    return kept.length === 0 ? {} : { rules: Object.fromEntries(kept.map((rule) => [rule.id, fixtureRule(rule)])) };
  };
  return {
    ...(organization.rules.some((rule) => rules.includes(rule)) ? { organization: of(organization.rules) } : {}),
    ...(member === undefined ? {} : { members: { [member.email]: of(member.rules) } }),
    ...(member === undefined ? {} : { keys: { [key?.id ?? 'key']: { owner: member.email, ...of(key?.rules ?? []) } } }),
  };
}

function fixtureRule(rule: PolicyRule): FixtureRule {
  const written = factsOf(rule.ruleType).list === null ? rule.ruleValue : entriesOf(rule);
  return { [rule.ruleType]: written, ...(rule.mode === 'report' ? { mode: rule.mode } : {}) };
}
