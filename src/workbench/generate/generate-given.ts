import { entriesOf, factsOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { FixtureGiven, FixtureRule, FixtureSubject, Scope } from '../../generated/types.ts';
import {
  groupsOf,
  type World,
  type WorldGroup,
  type WorldKey,
  type WorldMember,
  type WorldOrganization,
} from '../world/world.ts';

/** A subject with rules, and those above it whose rules meet the same calls. */
export interface RuleHolder {
  readonly scope: Scope;
  /** For people. */
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  readonly organization: WorldOrganization;
  /** Those of the member and the key, or the group itself. */
  readonly groups: readonly WorldGroup[];
  readonly member?: WorldMember;
  readonly key?: WorldKey;
}

/** Of the key, the member, the group or the organization. */
export const holderId = ({ scope, key, member, groups, organization }: RuleHolder): string =>
  key?.id ?? member?.id ?? (scope === 'group' ? groups[0]?.id : undefined) ?? organization.id;

/** Everyone in the world who has rules; or a key and those above it. */
export function ruleHolders(world: World, only?: WorldKey): RuleHolder[] {
  const { organizations, members, keys } = world;
  const owner = only === undefined ? undefined : members.get(only.memberId);
  return [...organizations.values()].flatMap((organization) => {
    const { id: organizationId } = organization;
    const ofKeys = [...keys.values()].filter((key) => key.organizationId === organizationId && (only ?? key) === key);
    const ofMembers = [...members.values()].filter(
      (member) => member.organizationId === organizationId && (owner ?? member) === member,
    );
    const ofGroups =
      only === undefined
        ? [...world.groups.values()].filter((group) => group.organizationId === organizationId)
        : groupsOf(world, only.id, only.memberId);
    const holders: RuleHolder[] = [
      { scope: 'organization', name: organization.name, rules: organization.rules, organization, groups: [] },
      ...ofGroups.map(
        (group): RuleHolder => ({
          scope: 'group',
          name: group.name,
          rules: group.rules,
          organization,
          groups: [group],
        }),
      ),
      ...ofMembers.map(
        (member): RuleHolder => ({
          scope: 'member',
          name: member.email,
          rules: member.rules,
          organization,
          groups: groupsOf(world, member.id),
          member,
        }),
      ),
      ...ofKeys.map((key): RuleHolder => {
        const member = members.get(key.memberId);
        return {
          scope: 'key',
          name: key.description === '' ? key.id : key.description,
          rules: key.rules,
          organization,
          groups: groupsOf(world, key.id, key.memberId),
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
export const rulesAround = ({ organization, groups, member, key }: RuleHolder): PolicyRule[] => [
  ...organization.rules,
  ...groups.flatMap(({ rules }) => rules),
  ...(member?.rules ?? []),
  ...(key?.rules ?? []),
];

/** What a fixture gives of a holder and those above it that have some of these rules. Keys go by their ids. */
export function subjectsGiven(
  { organization, groups, member, key }: RuleHolder,
  rules: readonly PolicyRule[],
): Pick<FixtureGiven, 'organization' | 'groups' | 'members' | 'keys'> {
  const of = (all: readonly PolicyRule[]): FixtureSubject => {
    const kept = all.filter((rule) => rules.includes(rule));
    return kept.length === 0 ? {} : { rules: Object.fromEntries(kept.map((rule) => [rule.id, fixtureRule(rule)])) };
  };
  const keyName = key?.id ?? 'key';
  const binding = groups.filter((group) => group.rules.some((rule) => rules.includes(rule)));
  const needsKey = member !== undefined || binding.length > 0;
  return {
    ...(organization.rules.some((rule) => rules.includes(rule)) ? { organization: of(organization.rules) } : {}),
    ...(binding.length === 0
      ? {}
      : { groups: Object.fromEntries(binding.map((group) => [group.name, { keys: [keyName], ...of(group.rules) }])) }),
    ...(member === undefined ? {} : { members: { [member.email]: of(member.rules) } }),
    ...(needsKey
      ? { keys: { [keyName]: { ...(member === undefined ? {} : { owner: member.email }), ...of(key?.rules ?? []) } } }
      : {}),
  };
}

function fixtureRule(rule: PolicyRule): FixtureRule {
  const written = factsOf(rule.ruleType).list === null ? rule.ruleValue : entriesOf(rule);
  return { [rule.ruleType]: written, ...(rule.mode === 'report' ? { mode: rule.mode } : {}) };
}
