import type { PolicyRule } from '../domain/iam-rule.ts';
import { compileSubjectRules } from '../policy/data-document.ts';
import type { Given } from './fixture-given.ts';
import type { GivenRule, Scope } from './fixture-rules.ts';
import { FixtureFault, type Place } from './fixture-source.ts';
import { type GivenKey, type GivenSubject, NOBODY } from './fixture-subjects.ts';
import type { World, WorldKey, WorldRule } from './world.ts';

/**
 * A fixture's world with the rules of another one: those of its keys (by id or description), of their owners and of their
 * organization. What the fixture says of models, addresses and requests stays. A rule that the fixture has too (by id, by its
 * id as description, or the same rule) goes by the fixture's id and description, so that expectations name it; the others by their
 * own.
 * @param place of what the fixture gives
 * @throws FixtureFault for a key that is not there, or not its owner's
 */
export function withRulesOf(world: World, given: Given, place: Place): Given {
  const members = new Map<string, GivenSubject>();
  const keys = new Map<string, GivenKey>();
  let organizationId: string | undefined;
  for (const [name, key] of given.keys) {
    const at = key.place ?? place;
    const stored = findKey(world, name, at);
    organizationId ??= stored.organizationId;
    if (organizationId !== stored.organizationId) throw new FixtureFault(at, 'The keys are of several organizations.');
    const owner = world.members.get(stored.memberId);
    if (owner === undefined) throw new FixtureFault(at, `The owner of the key "${name}" is missing.`);
    if (key.owner !== undefined && key.owner !== owner.email && key.owner !== owner.id) {
      throw new FixtureFault(at, `The key "${name}" belongs to ${owner.email}, not to ${key.owner}.`);
    }
    const written = given.members.get(key.owner ?? '') ?? NOBODY;
    members.set(owner.email, liveSubject('member', owner.rules, written, owner.email));
    keys.set(name, { ...liveSubject('key', stored.rules, key, name), owner: owner.email });
  }
  const rules = world.organizations.get(organizationId ?? '')?.rules ?? [];
  return { ...given, organization: liveSubject('organization', rules, given.organization), members, keys };
}

/** Every rule of a world: what its fixtures should cover. */
export const rulesOfWorld = ({ organizations, members, keys }: World): GivenRule[] => [
  ...[...organizations.values()].flatMap(({ rules }) => liveSubject('organization', rules, NOBODY).rules),
  ...[...members.values()].flatMap(({ rules, email }) => liveSubject('member', rules, NOBODY, email).rules),
  ...[...keys.values()].flatMap(({ rules, description }) => liveSubject('key', rules, NOBODY, description).rules),
];

function findKey({ keys }: World, name: string, place: Place): WorldKey {
  const meant = [...keys.values()].filter(({ id, description }) => id === name || description === name);
  const [key] = meant;
  if (key === undefined) throw new FixtureFault(place, `There is no key with the id or description "${name}".`);
  if (meant.length > 1) {
    throw new FixtureFault(place, `"${name}" means several keys: ${meant.map(({ id }) => id).join(', ')}.`);
  }
  return key;
}

function liveSubject(scope: Scope, stored: readonly WorldRule[], written: GivenSubject, owner?: string): GivenSubject {
  const free = new Set(written.rules);
  const take = (same: (rule: PolicyRule) => boolean): GivenRule | undefined => {
    const found = [...free].find(({ rule }) => same(rule));
    if (found !== undefined) free.delete(found);
    return found;
  };
  const named = new Map<WorldRule, GivenRule>();
  const tests: readonly ((stored: WorldRule, rule: PolicyRule) => boolean)[] = [
    ({ id }, rule) => rule.id === id,
    ({ description }, rule) => rule.id === description,
    (each, rule) => contentOf(rule) === contentOf(each),
  ];
  for (const same of tests) {
    for (const each of stored) {
      if (named.has(each)) continue;
      const found = take((rule) => same(each, rule));
      if (found !== undefined) named.set(each, found);
    }
  }
  const rules = stored.map((each) => {
    const known = named.get(each);
    const description = known === undefined ? each.description : known.description;
    return {
      scope,
      rule: { ...each, id: known?.rule.id ?? each.id },
      storedId: each.id,
      ...(description ? { description } : {}),
      ...(owner === undefined ? {} : { owner }),
    };
  });
  return { rules, available: true };
}

/** Equal for rules that do the same. */
const contentOf = (rule: PolicyRule): string => compileSubjectRules([{ ...rule, id: 'rule' }]);
