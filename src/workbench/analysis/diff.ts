import { isDeepStrictEqual } from 'node:util';
import { SCOPES } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type { AccessChanges, AccessDiff, AccessFlipRule, PolicySubject } from '../../generated/types.ts';
import { type AddressSet, intersect, isEmpty, subtract } from '../world/address-classes.ts';
import { credentialsIn, type Shown } from '../world/candidates.ts';
import { type Holder, holdersOf, type Reach, reachOf, SubjectTasks } from '../world/holders.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import { ruleContents } from '../world/rule-contents.ts';
import { type Cause, differing, type SubjectChange } from '../world/subject-change.ts';
import { groupNameOf, type World, type WorldRule, type WorldSubject } from '../world/world.ts';
import { type Block, FlipGroups, type HolderPair } from './flip-groups.ts';
import { ruleChanges } from './rule-changes.ts';

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
  shown: Shown,
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
 * than before are not judged.
 */
export async function accessChanges(
  judges: Judges,
  before: World,
  after: World,
  shown: Shown,
  onProgress?: OnProgress,
): Promise<AccessChanges> {
  const pairs = pairHolders(before, after).filter(mayDiffer);
  const tasks = new SubjectTasks();
  for (const pair of pairs) for (const each of subjectPairs(pair)) tasks.add(each.before, each.after);
  await tasks.judge(judges, onProgress);
  const groups = new FlipGroups(judges);
  for (const pair of pairs) {
    for (const block of blocksOf(pair, tasks, judges.mappings.length)) groups.add(pair, block);
  }
  return groups.changes(shown);
}

function pairHolders(before: World, after: World): HolderPair[] {
  const [was, is] = [holdersOf(before), holdersOf(after)];
  const hasCredential = credentialsIn(before, after);
  const afterById = new Map(is.map((holder) => [holder.id, holder]));
  const beforeIds = new Set(was.map(({ id }) => id));
  const pair = (old: Holder | undefined, now: Holder | undefined, { scope, id, name, organizationId }: Holder) => {
    const caller = { organizationId, projectId: now?.projectId ?? old?.projectId ?? null };
    return {
      holder: { scope, id, name },
      hasCredential: (mapping: Mapping) => hasCredential(caller, mapping),
      before: old?.subjects,
      after: now?.subjects,
    };
  };
  return [
    ...was.map((holder) => pair(holder, afterById.get(holder.id), afterById.get(holder.id) ?? holder)),
    ...is.filter(({ id }) => !beforeIds.has(id)).map((holder) => pair(undefined, holder, holder)),
  ];
}

/**
 * The subjects by scope: a key of another member has other member rules. Groups go by their ids: who joins one had none of its rules
 * before. A holder that is on one side only has its rules on both.
 */
function subjectPairs({ before = [], after = [] }: HolderPair): SubjectPair[] {
  const [was, is] = [before.length === 0 ? after : before, after.length === 0 ? before : after];
  const rulesIn = (subjects: readonly WorldSubject[], place: string): readonly WorldRule[] =>
    subjects.find((each) => placeOf(each) === place)?.rules ?? NO_RULES;
  const subjects = new Map([...was, ...is].map((subject) => [placeOf(subject), subject]));
  const ordered = [...subjects].sort(([, a], [, b]) => SCOPES.indexOf(a.scope) - SCOPES.indexOf(b.scope));
  return ordered.map(([place, subject]) => ({
    subject,
    before: rulesIn(was, place),
    after: rulesIn(is, place),
  }));
}

const NO_RULES: readonly WorldRule[] = [];

const placeOf = ({ scope, id }: PolicySubject): string => (scope === 'group' ? id : scope);

const mayDiffer = (holder: HolderPair): boolean =>
  holder.before === undefined ||
  holder.after === undefined ||
  subjectPairs(holder).some(({ before, after }) => ruleContents(before).key !== ruleContents(after).key);

function blocksOf(holder: HolderPair, tasks: SubjectTasks, mappingCount: number): Block[] {
  const pairs = subjectPairs(holder);
  const changes = pairs.map(({ before, after }) => tasks.of(before, after));
  const reach = (side: 'before' | 'after'): Reach =>
    reachOf(
      changes.map((change) => change[side]),
      mappingCount,
    );
  if (holder.before === undefined) return wholeReach('gained', reach('after'));
  if (holder.after === undefined) return wholeReach('lost', reach('before'));
  const scopes = pairs.map((each, index) => ({ ...each, change: changes[index] }));
  const [was, is] = [reach('before'), reach('after')];
  return [...flipped('gained', was, is, scopes), ...flipped('lost', is, was, scopes)];
}

const wholeReach = (change: 'gained' | 'lost', { mappings, addresses }: Reach): Block[] =>
  isEmpty(addresses)
    ? []
    : [{ change, mappings: differing(new Uint8Array(mappings.length), mappings), addresses, rules: [] }];

type ScopeChange = SubjectPair & { readonly change: SubjectChange | undefined };

/** The cells of the reach `having` that are not in `without`: two blocks, never a product of mappings and addresses. */
function flipped(change: 'gained' | 'lost', without: Reach, having: Reach, scopes: readonly ScopeChange[]): Block[] {
  const newMappings = differing(without.mappings, having.mappings);
  const sameMappings = differing(new Uint8Array(having.mappings.length), having.mappings).filter(
    (position) => without.mappings[position] === 1,
  );
  const sameAddresses = intersect(having.addresses, without.addresses);
  const newAddresses = addressParts(change, subtract(having.addresses, without.addresses), scopes);
  const mappingParts = mappingPartsOf(change, newMappings, scopes);
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

interface Part<Cells> {
  readonly cells: Cells;
  readonly rules: AccessFlipRule[];
}

/** Mappings by the rules that are responsible, in every scope that let them pass on one side only. */
function mappingPartsOf(
  change: 'gained' | 'lost',
  positions: readonly number[],
  scopes: readonly ScopeChange[],
): Part<number[]>[] {
  const rulesAt = new Map<number, AccessFlipRule[]>(positions.map((position) => [position, []]));
  for (const scope of scopes) {
    for (const cause of scope.change?.mappingCauses ?? []) {
      if (cause.change !== change) continue;
      const rules = flipRules(scope, cause);
      for (const position of cause.cells) rulesAt.get(position)?.push(...rules);
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
): Part<AddressSet>[] {
  let parts: Part<AddressSet>[] = [{ cells: addresses, rules: [] }];
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
