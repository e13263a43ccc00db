import { Document, isScalar, visit } from 'yaml';
import { KnownNames, nameWarnings } from '../../core/known-names.ts';
import { invalidField } from '../../domain/errors.ts';
import { readRule } from '../../domain/rule-content.ts';
import type {
  AccessChanges,
  AccessFlip,
  DraftRule,
  PolicyPlanChange,
  RuleCreate,
  RuleWidening,
  Scope,
  WidenedCell,
} from '../../generated/types.ts';
import { getOrMake } from '../../lib/collections.ts';
import { plainText } from '../../lib/text.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import { OWNERS, type Owners, type World, type WorldRule } from '../world/world.ts';
import { placed } from '../world/world-document.ts';
import { accessChanges } from './diff.ts';

/** The owner of a rule in a world. */
interface Owner {
  readonly owners: Owners;
  readonly id: string;
}

/**
 * The world as it would be with changed rules; what is not touched stays the same object.
 * @param keyId whose a new rule is that names nobody. @throws ApiError 400 whose `param` is the JSON pointer of the fault
 */
export const applyDrafts = (world: World, drafts: readonly DraftRule[], keyId?: string): World =>
  drafts.reduce((current, draft, index) => applyDraft(current, withOwner(draft, keyId), index), world);

/**
 * The warnings that a write of these rules would be answered with for names that nothing has, each after the place of its draft.
 * @param world as it would be with them
 */
export function draftWarnings(world: World, drafts: readonly DraftRule[]): string[] {
  const namesOf = new Map<string, KnownNames>();
  return drafts.flatMap(({ id }, index) => {
    const found = findRule(world, id ?? newId(index));
    if (found === undefined) return [];
    const organizationId = organizationOf(world, found.owner);
    const known = getOrMake(namesOf, organizationId, () => knownNamesOf(world, organizationId));
    return nameWarnings(found.rule, known).map((warning) => `/rules/${index}: ${warning}`);
  });
}

function knownNamesOf({ catalog, organizations }: World, organizationId: string): KnownNames {
  const own = organizations.get(organizationId)?.providers;
  return new KnownNames(catalog, {
    providers: (own?.providers ?? []).map(({ name }) => name),
    models: (own?.mappings ?? []).map(({ id }) => id),
    tags: (own?.tagSets ?? []).flatMap(({ tags }) => tags),
    aliases: (own?.aliases ?? []).map(({ name }) => name),
  });
}

const organizationOf = (world: World, { owners, id }: Owner): string =>
  owners === 'organizations' ? id : (world[owners].get(id)?.organizationId ?? '');

/** A rule of a subject, active or not, stored or new, as it would be. */
export interface RuleReplacement {
  readonly subject: { readonly scope: Scope; readonly id: string };
  readonly ruleId: string;
  /** Null: there is none. */
  readonly rule: RuleCreate | null;
}

/** The world with a rule of a subject as it would be, whatever it is now. @throws ApiError 400 for what is no rule */
export const withRule = (world: World, { subject, ruleId, rule }: RuleReplacement): World =>
  changed(world, { owners: OWNERS[subject.scope], id: subject.id }, (rules) => [
    ...rules.filter(({ id }) => id !== ruleId),
    ...(rule === null ? [] : readDraft(rule, ruleId, '')),
  ]);

/** Changes of a policy folder's apply, as replacements; a rule that is new goes by its name in the folder. */
export const replacementsOf = (changes: readonly PolicyPlanChange[]): RuleReplacement[] =>
  changes.map(({ owner, name, ruleId, after }) => ({ subject: owner, ruleId: ruleId ?? name ?? '', rule: after }));

const newId = (index: number): string => `draft_${index + 1}`;

function withOwner(draft: DraftRule, keyId: string | undefined): DraftRule {
  const { id, key, member, group, organization } = draft;
  const isNobodys = [id, key, member, group, organization].every((owner) => owner === undefined);
  return isNobodys && keyId !== undefined ? { ...draft, key: keyId } : draft;
}

function applyDraft(world: World, draft: DraftRule, index: number): World {
  const place = `/rules/${index}`;
  const { id, remove, key, member, group, organization, ...fields } = draft;
  const owners = [key, member, group, organization].filter((owner) => owner !== undefined).length;
  if (id === undefined) {
    if (remove) throw invalidField(`${place}/id`, 'is missing: say which rule is removed');
    if (owners !== 1) {
      throw invalidField(place, 'must name one of key, member, group and organization: whose rule it is');
    }
    const owner = newOwner(world, draft, place);
    return changed(world, owner, (rules) => [...rules, ...readDraft(fields, newId(index), place)]);
  }
  if (owners > 0) throw invalidField(place, 'names a rule, so it must not name an owner');
  const found = findRule(world, id);
  if (found === undefined) throw invalidField(`${place}/id`, 'is not an active rule', { quoted: `"${id}"` });
  if (remove && Object.keys(fields).length > 0) {
    throw invalidField(place, 'removes the rule, so it must not change it');
  }
  const { ruleType, ruleValue, mode, description } = found.rule;
  const replaced = remove ? [] : readDraft({ ruleType, ruleValue, mode, description, ...fields }, id, place);
  return changed(world, found.owner, (rules) => rules.flatMap((rule) => (rule.id === id ? replaced : [rule])));
}

/** The rule, or nothing when it is inactive. */
function readDraft(fields: Omit<DraftRule, 'id'>, id: string, place: string): WorldRule[] {
  const { canonical, mode, description, status } = placed(place, () => readRule(fields));
  return status === 'active' ? [{ ...canonical, id, mode, description }] : [];
}

function newOwner(world: World, { key, member, group }: DraftRule, place: string): Owner {
  if (key !== undefined) {
    const meant = [...world.keys.values()].filter(({ id, description }) => id === key || description === key);
    return only(meant, 'keys', `${place}/key`, `key is called "${key}"`);
  }
  if (member !== undefined) {
    const meant = [...world.members.values()].filter(
      ({ id, email }) => id === member || email === member.toLowerCase(),
    );
    return only(meant, 'members', `${place}/member`, `member has the id or e-mail "${member}"`);
  }
  if (group !== undefined) {
    const meant = [...world.groups.values()].filter(({ id, name }) => id === group || name === group);
    return only(meant, 'groups', `${place}/group`, `group is called "${group}"`);
  }
  return only([...world.organizations.values()], 'organizations', `${place}/organization`, 'organization is there');
}

/** @param what goes on from `no` and `more than one` */
function only(meant: readonly { readonly id: string }[], owners: Owners, place: string, what: string): Owner {
  const [first] = meant;
  if (first !== undefined && meant.length === 1) return { owners, id: first.id };
  const ids = meant.length === 0 ? '' : `: ${meant.map(({ id }) => id).join(', ')}`;
  throw invalidField(place, `: ${meant.length === 0 ? 'no' : 'more than one'} ${what}${ids}`);
}

function findRule(world: World, id: string): { owner: Owner; rule: WorldRule } | undefined {
  for (const owners of Object.values(OWNERS)) {
    for (const owner of world[owners].values()) {
      const rule = owner.rules.find((each) => each.id === id);
      if (rule !== undefined) return { owner: { owners, id: owner.id }, rule };
    }
  }
  return undefined;
}

function changed(world: World, { owners, id }: Owner, change: (rules: readonly WorldRule[]) => WorldRule[]): World {
  const replace = <T extends { readonly rules: readonly WorldRule[] }>(all: ReadonlyMap<string, T>) => {
    const owner = all.get(id);
    return owner === undefined ? all : new Map([...all, [id, { ...owner, rules: change(owner.rules) }]]);
  };
  switch (owners) {
    case 'organizations':
      return { ...world, organizations: replace(world.organizations) };
    case 'groups':
      return { ...world, groups: replace(world.groups) };
    case 'members':
      return { ...world, members: replace(world.members) };
    case 'keys':
      return { ...world, keys: replace(world.keys) };
  }
}

/** A draft as the text of a YAML file; lists stand in one line each. */
export function draftText(rules: readonly DraftRule[], header: string): string {
  const document = new Document({ rules });
  visit(document, {
    Seq(_key, list) {
      if (list.items.every(isScalar)) list.flow = true;
    },
  });
  return `# ${plainText(header)}\n${document.toString({ lineWidth: 120, flowCollectionPadding: false })}`;
}

const MOST_CELLS = 100;
const MOST_ADDRESSES = 20;

/** The members and keys that would be in a group. */
export interface Regrouping {
  readonly groupId: string;
  readonly holderIds: readonly string[];
}

/**
 * Computes the access that a changed rule, or another composition of a group, newly permits in an organization, exactly, over
 * the judges' mappings: also where a credential is missing, since that may come later, and no rule would stand against it.
 * @throws PolicyFailure
 */
export async function widening(
  judges: Judges,
  world: World,
  change: RuleReplacement | Regrouping,
  onProgress?: OnProgress,
): Promise<RuleWidening> {
  const after = 'ruleId' in change ? withRule(world, change) : withHolders(world, change);
  return wideningOf(await accessChanges(judges, world, after, { withoutCredential: true }, onProgress));
}

/** The widening in changes of access, of which none may be left out for lack of a credential. */
export function wideningOf({ flips }: Pick<AccessChanges, 'flips'>): RuleWidening {
  const gained = flips.filter(({ change }) => change === 'gained');
  return {
    count: gained.reduce((sum, { holders, mappings }) => sum + holders.length * mappings.length, 0),
    cells: cellsOf(gained).take(MOST_CELLS).toArray(),
  };
}

function withHolders(world: World, { groupId, holderIds }: Regrouping): World {
  const group = world.groups.get(groupId);
  if (group === undefined) return world;
  return { ...world, groups: new Map([...world.groups, [groupId, { ...group, holderIds: new Set(holderIds) }]]) };
}

function* cellsOf(flips: readonly AccessFlip[]): Generator<WidenedCell, undefined> {
  for (const { holders, mappings, credential, addresses } of flips) {
    const from = {
      addresses: addresses.slice(0, MOST_ADDRESSES),
      moreAddresses: Math.max(0, addresses.length - MOST_ADDRESSES),
    };
    for (const holder of holders) for (const mapping of mappings) yield { holder, mapping, credential, ...from };
  }
}
