import { effectOf, kindOf, type PolicyRule } from '../../domain/iam-rule.ts';
import type { PolicyViolation } from '../../generated/types.ts';
import { type AddressSet, addressClasses, intersect, isEmpty, union } from './address-classes.ts';
import { contentOf } from './rule-contents.ts';
import { rangesOf, type SubjectAccess, type SubjectJudge } from './subject-judge.ts';

/** Cells that flip for one reason. Rules are named by their ids, on the side where they stand. */
export interface Cause<Cells> {
  readonly change: 'gained' | 'lost';
  readonly cells: Cells;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** How one subject's rules changed, judged alone. */
export interface SubjectChange {
  readonly before: SubjectAccess;
  readonly after: SubjectAccess;
  /** By position. */
  readonly mappingCauses: readonly Cause<readonly number[]>[];
  readonly addressCauses: readonly Cause<AddressSet>[];
}

type Rules = readonly PolicyRule[];

/** Judges both sides, and says of everything that flips which rules are responsible. @throws PolicyFailure */
export function subjectChange(judge: SubjectJudge, before: Rules, after: Rules): SubjectChange {
  const [was, is] = [judge.access(before), judge.access(after)];
  return {
    before: was,
    after: is,
    mappingCauses: [
      ...mappingCauses(judge, { change: 'gained', before, after }, differing(was.mappings, is.mappings)),
      ...mappingCauses(judge, { change: 'lost', before, after }, differing(is.mappings, was.mappings)),
    ],
    addressCauses: addressCauses(judge, before, after, was.addresses, is.addresses),
  };
}

/** Positions where the second is set and the first is not. */
export function differing(without: Uint8Array, having: Uint8Array): number[] {
  const positions: number[] = [];
  for (const [position, value] of having.entries())
    if (value === 1 && without[position] !== 1) positions.push(position);
  return positions;
}

function mappingCauses(judge: SubjectJudge, flip: Flip, flipped: readonly number[]): Cause<number[]>[] {
  if (flipped.length === 0) return [];
  const groups = new Map<string, { rules: Responsible; cells: number[] }>();
  for (const [position, violations] of judge.mappingViolations(denyingSide(flip), flipped)) {
    const matches = (rule: PolicyRule): boolean => judge.access([rule]).mappings[position] === 1;
    const rules = responsible(flip, violations, matches);
    const key = JSON.stringify(rules);
    const group = groups.get(key) ?? { rules, cells: [] };
    groups.set(key, group);
    group.cells.push(position);
  }
  return [...groups.values()].map(({ rules, cells }) => ({ change: flip.change, cells, ...sides(flip.change, rules) }));
}

function addressCauses(
  judge: SubjectJudge,
  before: Rules,
  after: Rules,
  was: AddressSet,
  is: AddressSet,
): Cause<AddressSet>[] {
  const groups = new Map<string, { change: 'gained' | 'lost'; rules: Responsible; cells: AddressSet[] }>();
  for (const { representative, addresses } of addressClasses(rangesOf([...before, ...after]))) {
    const lies = (set: AddressSet): boolean => !isEmpty(intersect(set, addresses));
    if (lies(was) === lies(is)) continue;
    const change = lies(is) ? 'gained' : 'lost';
    const flip: Flip = { change, before, after };
    const matches = (rule: PolicyRule): boolean => lies(judge.access([rule]).addresses);
    const rules = responsible(flip, judge.addressViolations(denyingSide(flip), representative), matches);
    const key = JSON.stringify([change, rules]);
    const group = groups.get(key) ?? { change, rules, cells: [] };
    groups.set(key, group);
    group.cells.push(addresses);
  }
  return [...groups.values()].map(({ change, rules, cells }) => ({
    change,
    cells: union(cells),
    ...sides(change, rules),
  }));
}

interface Responsible {
  readonly denying: readonly string[];
  readonly permitting: readonly string[];
}

interface Flip {
  readonly change: 'gained' | 'lost';
  readonly before: Rules;
  readonly after: Rules;
}

const denyingSide = ({ change, before, after }: Flip): Rules => (change === 'gained' ? before : after);
const permittingSide = ({ change, before, after }: Flip): Rules => (change === 'gained' ? after : before);

/**
 * Which rules made the difference: with those as they were before, the cell is as it was. A deny rule that matches on the denying
 * side no longer does on the other one. Where none of the allow rules matched, either the permitting side has one that does, or
 * it has no allow rule of that kind at all.
 */
function responsible(
  flip: Flip,
  violations: readonly PolicyViolation[],
  matches: (rule: PolicyRule) => boolean,
): Responsible {
  const [denying, permitting] = [denyingSide(flip), permittingSide(flip)];
  const permittingContents = new Set(permitting.map(contentOf));
  const found = { denying: new Set<string>(), permitting: new Set<string>() };
  for (const { effect, kind, ruleIds } of violations) {
    const allowing = permitting.filter(
      ({ ruleType }) => effect === 'allow' && effectOf(ruleType) === 'allow' && kindOf(ruleType) === kind,
    );
    const matching = allowing.filter(matches);
    for (const { id } of matching) found.permitting.add(id);
    const violated = denying.filter(({ id }) => ruleIds.includes(id));
    const restricts = violated.some((rule) => permittingContents.has(contentOf(rule)));
    // Without the new rule that matches, a kind that kept none of its old ones would not restrict at all.
    if (matching.length > 0 && (flip.change === 'lost' || restricts)) continue;
    for (const { id } of violated) found.denying.add(id);
  }
  return { denying: [...found.denying].sort(), permitting: [...found.permitting].sort() };
}

const sides = (change: 'gained' | 'lost', { denying, permitting }: Responsible) =>
  change === 'gained' ? { before: denying, after: permitting } : { before: permitting, after: denying };
