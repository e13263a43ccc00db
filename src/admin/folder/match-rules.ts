import { byList } from '../../domain/iam-rule.ts';
import { type RuleContent, readRule } from '../../domain/rule-content.ts';
import type { PolicyPlanChange } from '../../generated/types.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';

/** A rule of one owner that a folder's apply makes, changes or removes; without `before` it is new, without `after` it goes. */
export interface RuleMatch {
  readonly action: PolicyPlanChange['action'];
  /** In the folder; null: no folder states it. */
  readonly name: string | null;
  readonly before: RuleRecord | null;
  readonly after: RuleContent | null;
}

export interface FolderClaim {
  /** The name that the folder gives itself. */
  readonly source: string;
  /** Whether rules that no folder states are removed. */
  readonly prune: boolean;
}

export interface MatchedRules {
  readonly changes: readonly RuleMatch[];
  /** Stated rules that are there as they are stated. */
  readonly unchanged: number;
  /** Rules that are neither stated nor removed. */
  readonly others: readonly RuleRecord[];
}

/**
 * Which of an owner's rules a folder means. A rule goes by its name. A stated one whose name the folder did not have means a rule
 * that does the same, if there is one: one that no folder states, or one of the folder's whose name is gone.
 */
export function matchRules(
  present: readonly RuleRecord[],
  stated: ReadonlyMap<string, RuleContent>,
  { source, prune }: FolderClaim,
): MatchedRules {
  const isOwn = ({ managedBy }: RuleRecord): boolean => managedBy === source;
  const named = new Map(
    present.filter((rule) => isOwn(rule) && stated.has(rule.managedName ?? '')).map((rule) => [rule.managedName, rule]),
  );
  const free = present.filter((rule) => rule.managedBy === null || (isOwn(rule) && !named.has(rule.managedName)));
  const adopted = adoptable(free, new Map([...stated].filter(([name]) => !named.has(name))));
  const matches = [...stated].map(([name, after]) => match(name, named.get(name) ?? adopted.get(name) ?? null, after));
  const taken = new Set([...named.values(), ...adopted.values()]);
  const removed = free.filter((rule) => !taken.has(rule) && (isOwn(rule) || prune));
  const gone = new Set(removed);
  return {
    changes: [
      ...matches.filter((each) => each !== undefined),
      ...removed.map((before): RuleMatch => ({ action: 'remove', name: before.managedName, before, after: null })),
    ],
    unchanged: matches.filter((each) => each === undefined).length,
    others: present.filter((rule) => !taken.has(rule) && !gone.has(rule)),
  };
}

/** Undefined: the rule is there as it is stated. */
function match(name: string, before: RuleRecord | null, after: RuleContent): RuleMatch | undefined {
  if (before === null) return { action: 'add', name, before, after };
  if (before.managedBy === null) return { action: 'adopt', name, before, after };
  if (before.managedName !== name) return { action: 'rename', name, before, after };
  return wording(contentOf(before)) === wording(after) ? undefined : { action: 'change', name, before, after };
}

/** For each of these stated rules the one that it means, first those that say it in the same words. */
function adoptable(
  free: readonly RuleRecord[],
  stated: ReadonlyMap<string, RuleContent>,
): ReadonlyMap<string, RuleRecord> {
  const adopted = new Map<string, RuleRecord>();
  const taken = new Set<RuleRecord>();
  for (const textOf of [wording, effect]) {
    const byText = Map.groupBy(free, (rule) => textOf(contentOf(rule)));
    for (const [name, content] of stated) {
      if (adopted.has(name)) continue;
      const found = byText.get(textOf(content))?.find((rule) => !taken.has(rule));
      if (found === undefined) continue;
      adopted.set(name, found);
      taken.add(found);
    }
  }
  return adopted;
}

/** The content of a stored rule. */
export const contentOf = ({ ruleType, ruleValue, status, mode, description }: RuleRecord): RuleContent =>
  readRule({ ruleType, ruleValue, status, mode, description });

/** Equal for rules that are written alike. */
const wording = ({ ruleType, ruleValue, status, mode, description }: RuleContent): string =>
  JSON.stringify([ruleType, ruleValue, status, mode, description]);

/** Equal for rules that do the same: the order of entries and the description do not matter. */
function effect({ canonical, status, mode }: RuleContent): string {
  const sorted = (entries: readonly string[]): readonly string[] => entries.toSorted();
  const lists = { models: sorted, providers: sorted, ip_cidrs: sorted, tags: sorted };
  return JSON.stringify([canonical.ruleType, byList<object>(canonical, lists, canonical.ruleValue), status, mode]);
}
