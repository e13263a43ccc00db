import { isDeepStrictEqual } from 'node:util';
import { SCOPES } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type {
  AccessChanges,
  AccessDiff,
  AccessFlip,
  AccessFlipRule,
  AccessHolder,
  PolicySubject,
} from '../../generated/types.ts';
import { type AddressSet, formatAddresses, intersect, isEmpty, subtract } from '../world/address-classes.ts';
import { type ComparedMappings, credentialsIn, type ReportOptions } from '../world/candidates.ts';
import { type Holder, holdersOf, type Reach, reachOf, SubjectTasks } from '../world/holders.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import { type Cause, contentOf, differing, ruleContents, type SubjectChange } from '../world/subject-judge.ts';
import { groupNameOf, OWNERS, type World, type WorldRule, type WorldSubject } from '../world/world.ts';

/** One subject of a holder on both sides. */
interface SubjectPair {
  readonly subject: WorldSubject;
  readonly before: readonly WorldRule[];
  readonly after: readonly WorldRule[];
}

/**
 * Exactly the cells that flip from one world to the other, over the judges' mappings, and the rules responsible; then those
 * that would flip if the new and changed rules in mode `report` were enforced. @throws PolicyFailure
 */
export async function accessDiff(
  judges: Judges,
  before: World,
  after: World,
  shown: ReportOptions,
  onProgress?: OnProgress,
): Promise<AccessDiff> {
  const { count, enforced } = ruleChanges(before, after);
  return {
    ...(await accessChanges(judges, before, after, shown, onProgress)),
    ifEnforced: await accessChanges(judges, after, enforced ?? after, shown, onProgress),
    changedRules: count,
    warnings: [],
  };
}

/**
 * Cells whose mapping the holder can call on neither side are counted apart. Holders none of whose subjects say anything else
 * than before are not judged, unless the worlds' mappings and credentials are compared too.
 * @param compared the mappings of both worlds, which the judges judge; absent: the judges' are those of both
 */
export async function accessChanges(
  judges: Judges,
  before: World,
  after: World,
  shown: ReportOptions,
  onProgress?: OnProgress,
  compared?: ComparedMappings,
): Promise<AccessChanges> {
  const all = pairHolders(before, after);
  const pairs = compared === undefined ? all.filter(mayDiffer) : all;
  const named = compared?.named ?? judges.mappings.map((mapping, place) => ({ mapping, was: place, is: place }));
  if (named.length === 0) return NO_CHANGES;
  const tasks = new SubjectTasks();
  for (const pair of pairs) for (const each of subjectPairs(pair)) tasks.add(each.before, each.after);
  await tasks.judge(judges, onProgress);
  const groups = new FlipGroups(named);
  for (const pair of pairs) {
    for (const block of blocksOf(pair, tasks, named, judges.mappings.length)) groups.add(pair, block);
    if (compared !== undefined)
      for (const block of credentialBlocks(pair, tasks, named, judges.mappings.length)) groups.add(pair, block);
  }
  return groups.changes(shown);
}

const NO_CHANGES: AccessChanges = {
  gained: 0,
  lost: 0,
  withoutCredential: { gained: 0, lost: 0 },
  flips: [],
};

type NamedMappings = ComparedMappings['named'];

function pairHolders(before: World, after: World): HolderPair[] {
  const [was, is] = withoutCovered(holdersOf(before), holdersOf(after));
  const [hasCredential, had, hasNow] = [credentialsIn(before, after), credentialsIn(before), credentialsIn(after)];
  const afterById = new Map(is.map((holder) => [holder.id, holder]));
  const beforeIds = new Set(was.map(({ id }) => id));
  const pair = (old: Holder | undefined, now: Holder | undefined, { scope, id, name, organizationId }: Holder) => {
    const caller = { organizationId, projectId: now?.projectId ?? old?.projectId ?? null };
    return {
      holder: { scope, id, name },
      hasCredential: (mapping: Mapping) => hasCredential(caller, mapping),
      had: (mapping: Mapping) => had(caller, mapping),
      hasNow: (mapping: Mapping) => hasNow(caller, mapping),
      before: old?.subjects,
      after: now?.subjects,
    };
  };
  return [
    ...was.map((holder) => pair(holder, afterById.get(holder.id), afterById.get(holder.id) ?? holder)),
    ...is.filter(({ id }) => !beforeIds.has(id)).map((holder) => pair(undefined, holder, holder)),
  ];
}

/** Both sides without the holders whom another line covers on both. */
function withoutCovered(was: readonly Holder[], is: readonly Holder[]): [Holder[], Holder[]] {
  const own = new Set([...was, ...is].flatMap(({ id, isCovered }) => (isCovered ? [] : id)));
  const isShown = ({ id }: Holder): boolean => own.has(id);
  return [was.filter(isShown), is.filter(isShown)];
}

/**
 * The subjects by scope: a key of another member has other member rules. Groups go by their ids: who joins one had none of its rules
 * before. A holder that is on one side only has its rules on both.
 */
function subjectPairs({ before = [], after = [] }: HolderPair): SubjectPair[] {
  const [was, is] = [before.length === 0 ? after : before, after.length === 0 ? before : after];
  const rulesIn = (subjects: readonly WorldSubject[], place: string): readonly WorldRule[] =>
    subjects.find((each) => groupOrScope(each) === place)?.rules ?? NO_RULES;
  const subjects = new Map([...was, ...is].map((subject) => [groupOrScope(subject), subject]));
  const ordered = [...subjects].sort(([, a], [, b]) => SCOPES.indexOf(a.scope) - SCOPES.indexOf(b.scope));
  return ordered.map(([place, subject]) => ({
    subject,
    before: rulesIn(was, place),
    after: rulesIn(is, place),
  }));
}

const NO_RULES: readonly WorldRule[] = [];

const groupOrScope = ({ scope, id }: PolicySubject): string => (scope === 'group' ? id : scope);

const mayDiffer = (holder: HolderPair): boolean =>
  holder.before === undefined ||
  holder.after === undefined ||
  subjectPairs(holder).some(({ before, after }) => ruleContents(before).key !== ruleContents(after).key);

function blocksOf(holder: HolderPair, tasks: SubjectTasks, named: NamedMappings, judged: number): Block[] {
  const { was, is } = reachesOf(holder, tasks, named, judged);
  if (holder.before === undefined) return wholeReach('gained', is);
  if (holder.after === undefined) return wholeReach('lost', was);
  const scopes = subjectPairs(holder).map((each) => ({ ...each, change: tasks.of(each.before, each.after) }));
  return [
    ...flipped('gained', was, is, scopes, placesIn(named, 'is')),
    ...flipped('lost', is, was, scopes, placesIn(named, 'was')),
  ];
}

/** The reach of a holder on both sides, by the positions of the named mappings. @param judged how many are */
function reachesOf(holder: HolderPair, tasks: SubjectTasks, named: NamedMappings, judged: number) {
  const changes = subjectPairs(holder).map(({ before, after }) => tasks.of(before, after));
  const reach = (side: 'before' | 'after', place: 'was' | 'is'): Reach => {
    const { mappings, addresses } = reachOf(
      changes.map((change) => change[side]),
      judged,
    );
    return { mappings: Uint8Array.from(named, (each) => mappings[each[place] ?? -1] ?? 0), addresses };
  };
  return { was: reach('before', 'was'), is: reach('after', 'is') };
}

/** The positions of named mappings by their places among the judged. */
const placesIn = (named: NamedMappings, place: 'was' | 'is'): ReadonlyMap<number, number> =>
  new Map(named.flatMap((each, position) => (each[place] === undefined ? [] : [[each[place], position] as const])));

/** The cells that the rules permit on both sides and that can be called on one alone. */
function credentialBlocks(holder: HolderPair, tasks: SubjectTasks, named: NamedMappings, judged: number): Block[] {
  if (holder.before === undefined || holder.after === undefined) return [];
  const changed = named.map(({ mapping }) => Number(holder.hasNow(mapping)) - Number(holder.had(mapping)));
  if (changed.every((each) => each === 0)) return [];
  const { was, is } = reachesOf(holder, tasks, named, judged);
  const addresses = intersect(was.addresses, is.addresses);
  return (['gained', 'lost'] as const).flatMap((change) => {
    const mappings = [...changed.keys()].filter(
      (at) => was.mappings[at] === 1 && is.mappings[at] === 1 && changed[at] === (change === 'gained' ? 1 : -1),
    );
    return mappings.length === 0 || isEmpty(addresses)
      ? []
      : [{ change, mappings, addresses, rules: [], reason: 'credentials' as const }];
  });
}

const wholeReach = (change: 'gained' | 'lost', { mappings, addresses }: Reach): Block[] =>
  isEmpty(addresses)
    ? []
    : [{ change, mappings: differing(new Uint8Array(mappings.length), mappings), addresses, rules: [] }];

type ScopeChange = SubjectPair & { readonly change: SubjectChange | undefined };

/** The cells of the reach `having` that are not in `without`: two blocks, never a product of mappings and addresses. */
function flipped(
  change: 'gained' | 'lost',
  without: Reach,
  having: Reach,
  scopes: readonly ScopeChange[],
  positions: ReadonlyMap<number, number>,
): Block[] {
  const newMappings = differing(without.mappings, having.mappings);
  const sameMappings = differing(new Uint8Array(having.mappings.length), having.mappings).filter(
    (position) => without.mappings[position] === 1,
  );
  const sameAddresses = intersect(having.addresses, without.addresses);
  const newAddresses = addressParts(change, subtract(having.addresses, without.addresses), scopes);
  const mappingParts = mappingPartsOf(change, newMappings, scopes, positions);
  const blocks = mappingParts.map(({ cells, rules }) => ({ mappings: cells, addresses: sameAddresses, rules }));
  for (const part of newAddresses) {
    blocks.push({ mappings: sameMappings, addresses: part.cells, rules: part.rules });
    for (const { cells, rules } of mappingParts) {
      blocks.push({ mappings: cells, addresses: part.cells, rules: unique([...rules, ...part.rules]) });
    }
  }
  return blocks
    .filter(({ mappings, addresses }) => mappings.length > 0 && !isEmpty(addresses))
    .map((block) => ({ change, ...block }));
}

interface ChangedCells<Cells> {
  readonly cells: Cells;
  readonly rules: AccessFlipRule[];
}

/**
 * Mappings by the rules that are responsible, in every scope that let them pass on one side only.
 * @param places the positions of the judged ones
 */
function mappingPartsOf(
  change: 'gained' | 'lost',
  positions: readonly number[],
  scopes: readonly ScopeChange[],
  places: ReadonlyMap<number, number>,
): ChangedCells<number[]>[] {
  const rulesAt = new Map<number, AccessFlipRule[]>(positions.map((position) => [position, []]));
  for (const scope of scopes) {
    for (const cause of scope.change?.mappingCauses ?? []) {
      if (cause.change !== change) continue;
      const rules = flipRules(scope, cause);
      for (const place of cause.cells) rulesAt.get(places.get(place) ?? -1)?.push(...rules);
    }
  }
  const parts = Map.groupBy(rulesAt, ([, rules]) => JSON.stringify(rules));
  return [...parts.values()].map((cells) => ({
    cells: cells.map(([position]) => position),
    rules: cells[0]?.[1] ?? [],
  }));
}

function addressParts(
  change: 'gained' | 'lost',
  addresses: AddressSet,
  scopes: readonly ScopeChange[],
): ChangedCells<AddressSet>[] {
  let parts: ChangedCells<AddressSet>[] = [{ cells: addresses, rules: [] }];
  for (const scope of scopes) {
    for (const cause of scope.change?.addressCauses ?? []) {
      if (cause.change !== change) continue;
      const rules = flipRules(scope, cause);
      parts = parts.flatMap((part) => [
        { cells: subtract(part.cells, cause.cells), rules: part.rules },
        { cells: intersect(part.cells, cause.cells), rules: [...part.rules, ...rules] },
      ]);
      parts = parts.filter(({ cells }) => !isEmpty(cells));
    }
  }
  return parts.filter(({ cells }) => !isEmpty(cells));
}

/** The rules of a cause by their own ids, sorted. */
function flipRules({ subject, before, after }: ScopeChange, cause: Cause<unknown>): AccessFlipRule[] {
  const [was, is] = [ruleContents(before), ruleContents(after)];
  const ids = new Set([...cause.before.flatMap(was.idsAt), ...cause.after.flatMap(is.idsAt)]);
  return [...ids].sort().flatMap((id) => {
    const [old, now] = [before, after].map((rules) => rules.find((rule) => rule.id === id));
    const rule = now ?? old;
    if (rule === undefined) return [];
    const change = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed';
    const { ruleType, description } = rule;
    return [{ id, scope: subject.scope, ...groupNameOf(subject), ruleType, description, change }];
  });
}

function unique(rules: readonly AccessFlipRule[]): AccessFlipRule[] {
  return rules.filter((rule, index) => rules.findIndex((other) => isDeepStrictEqual(rule, other)) === index);
}

/** Differences between the rules of two worlds, whether access differs or not. */
interface RuleChanges {
  /** Rules that were added, removed or changed. */
  readonly count: number;
  /** The second world if its new and changed rules in mode `report` were enforced; undefined where there are none. */
  readonly enforced: World | undefined;
}

type Ruled = { readonly rules: readonly WorldRule[] };

function ruleChanges(before: World, after: World): RuleChanges {
  const [was, is] = [textsOf(before), textsOf(after)];
  const ids = new Set([...was.keys(), ...is.keys()]);
  const changed = new Set(ids.values().filter((id) => was.get(id) !== is.get(id)));
  let reported = 0;
  const enforce = <T extends Ruled>(owners: ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
    new Map(
      owners.entries().map(([id, owner]) => {
        const isMeant = (rule: WorldRule): boolean => rule.mode === 'report' && changed.has(keyOf(id, rule));
        if (!owner.rules.some(isMeant)) return [id, owner];
        reported += 1;
        const rules = owner.rules.map((rule): WorldRule => (isMeant(rule) ? { ...rule, mode: 'enforce' } : rule));
        return [id, { ...owner, rules }];
      }),
    );
  const enforced: World = {
    ...after,
    organizations: enforce(after.organizations),
    groups: enforce(after.groups),
    members: enforce(after.members),
    keys: enforce(after.keys),
  };
  return { count: changed.size, enforced: reported === 0 ? undefined : enforced };
}

const keyOf = (ownerId: string, { id }: WorldRule): string => JSON.stringify([ownerId, id]);

/** Texts of the rules, by owner and id. */
const textsOf = (world: World): Map<string, string> =>
  new Map(
    Object.values(OWNERS).flatMap((owners) =>
      [...world[owners].entries()].flatMap(([ownerId, { rules }]) =>
        rules.map((rule): [string, string] => [keyOf(ownerId, rule), `${rule.mode} ${contentOf(rule)}`]),
      ),
    ),
  );

/** A holder on both sides; only on one: the other has no subjects. */
interface HolderPair {
  readonly holder: AccessHolder;
  /** Whether they can call a mapping, on one side at least. */
  readonly hasCredential: (mapping: Mapping) => boolean;
  /** Whether they could before, and can after. */
  readonly had: (mapping: Mapping) => boolean;
  readonly hasNow: (mapping: Mapping) => boolean;
  readonly before: readonly WorldSubject[] | undefined;
  readonly after: readonly WorldSubject[] | undefined;
}

/** Cells of one holder that flip for one reason. */
interface Block {
  readonly change: 'gained' | 'lost';
  readonly mappings: readonly number[];
  readonly addresses: AddressSet;
  readonly rules: readonly AccessFlipRule[];
  readonly reason?: 'credentials';
}

/** Puts together what flips alike, across holders; what they cannot call for lack of a credential apart. */
class FlipGroups {
  readonly #named: NamedMappings;
  readonly #flips = new Map<string, AccessFlip>();

  constructor(named: NamedMappings) {
    this.#named = named;
  }

  add(pair: HolderPair, block: Block): void {
    const flipping = block.mappings.flatMap((position) => this.#named[position]?.mapping ?? []);
    const [callable = [], others = []] = [true, false].map((wanted) =>
      flipping.filter((mapping) => pair.hasCredential(mapping) === wanted).map(({ id }) => id),
    );
    this.#add(pair, block, callable, true);
    this.#add(pair, block, others, false);
  }

  #add({ holder, before, after }: HolderPair, block: Block, mappings: string[], credential: boolean): void {
    if (mappings.length === 0) return;
    const { change, addresses, rules } = block;
    const reason = before === undefined ? 'holder added' : after === undefined ? 'holder removed' : reasonOf(block);
    const texts = formatAddresses(addresses);
    const key = JSON.stringify([change, credential, reason, rules, texts, mappings]);
    const known = this.#flips.get(key);
    if (known !== undefined) {
      known.holders.push(holder);
      return;
    }
    const flip: AccessFlip = {
      change,
      holders: [holder],
      mappings,
      credential,
      addresses: texts,
      reason,
      rules: [...rules],
    };
    this.#flips.set(key, flip);
  }

  changes({ withoutCredential }: ReportOptions): AccessChanges {
    const flips = [...this.#flips.values()];
    const [callable = [], others = []] = [true, false].map((wanted) =>
      flips.filter(({ credential }) => credential === wanted),
    );
    return {
      gained: pairsOf(callable, 'gained'),
      lost: pairsOf(callable, 'lost'),
      withoutCredential: { gained: pairsOf(others, 'gained'), lost: pairsOf(others, 'lost') },
      flips: withoutCredential ? flips : callable,
    };
  }
}

/** Without a rule that is responsible, the mapping is another one. */
const reasonOf = ({ reason, rules }: Block): AccessFlip['reason'] =>
  reason ?? (rules.length === 0 ? 'models' : 'rules');

/** Pairs of a holder and a mapping; one that flips at several addresses for several reasons counts once. */
function pairsOf(flips: readonly AccessFlip[], change: 'gained' | 'lost'): number {
  const pairs = new Set<string>();
  for (const flip of flips) {
    if (flip.change !== change) continue;
    for (const { id } of flip.holders) for (const mapping of flip.mappings) pairs.add(`${id} ${mapping}`);
  }
  return pairs.size;
}
