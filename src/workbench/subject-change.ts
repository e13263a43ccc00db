import { effectOf, kindOf, type PolicyRule } from '../domain/iam-rule.ts';
import type { PolicyViolation } from '../generated/types.ts';
import { type AddressSet, addressClasses, intersect, isEmpty, union } from './address-classes.ts';
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
      ...mappingCauses(judge, 'gained', before, after, differing(was.mappings, is.mappings)),
      ...mappingCauses(judge, 'lost', before, after, differing(is.mappings, was.mappings)),
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

function mappingCauses(
  judge: SubjectJudge,
  change: 'gained' | 'lost',
  before: Rules,
  after: Rules,
  flipped: readonly number[],
): Cause<number[]>[] {
  if (flipped.length === 0) return [];
  const [denying, permitting] = change === 'gained' ? [before, after] : [after, before];
  const groups = new Map<string, { rules: Responsible; cells: number[] }>();
  for (const [position, violations] of judge.mappingViolations(denying, flipped)) {
    const matches = (rule: PolicyRule): boolean => judge.access([rule]).mappings[position] === 1;
    const rules = responsible(violations, permitting, matches);
    const key = JSON.stringify(rules);
    const group = groups.get(key) ?? { rules, cells: [] };
    groups.set(key, group);
    group.cells.push(position);
  }
  return [...groups.values()].map(({ rules, cells }) => ({ change, cells, ...sides(change, rules) }));
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
    const [denying, permitting] = change === 'gained' ? [before, after] : [after, before];
    const matches = (rule: PolicyRule): boolean => lies(judge.access([rule]).addresses);
    const rules = responsible(judge.addressViolations(denying, representative), permitting, matches);
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

/**
 * Which rules made the difference. A deny rule that matches on the denying side no longer does on the other one. Where none of
 * the allow rules matched, either the permitting side has one that does, or it has no allow rule of that kind at all.
 */
function responsible(
  violations: readonly PolicyViolation[],
  permitting: Rules,
  matches: (rule: PolicyRule) => boolean,
): Responsible {
  const found = { denying: new Set<string>(), permitting: new Set<string>() };
  for (const { effect, kind, ruleIds } of violations) {
    const allowing = permitting.filter(
      (rule) =>
        effect === 'allow' && effectOf(rule.ruleType) === 'allow' && kindOf(rule.ruleType) === kind && matches(rule),
    );
    for (const { id } of allowing) found.permitting.add(id);
    if (allowing.length === 0) for (const id of ruleIds) found.denying.add(id);
  }
  return { denying: [...found.denying].sort(), permitting: [...found.permitting].sort() };
}

const sides = (change: 'gained' | 'lost', { denying, permitting }: Responsible) =>
  change === 'gained' ? { before: denying, after: permitting } : { before: permitting, after: denying };
