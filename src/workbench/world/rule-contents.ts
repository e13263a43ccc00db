import { entriesOf, factsOf, type PolicyRule } from '../../domain/iam-rule.ts';

/**
 * What the enforced rules of a subject say, without their ids: subjects with equal contents are judged once. Rules of equal
 * content are one, and the id of each is its position.
 */
export interface RuleContents {
  /** Equal for equal contents. */
  readonly key: string;
  readonly rules: readonly PolicyRule[];
  /** The rules that say what the content at a position says, sorted. */
  readonly idsAt: (position: string) => readonly string[];
}

const known = new WeakMap<readonly PolicyRule[], RuleContents>();

/** The contents of a list of rules, which must not change. */
export function ruleContents(rules: readonly PolicyRule[]): RuleContents {
  const found = known.get(rules);
  if (found !== undefined) return found;
  const contents = contentsOf(rules);
  known.set(rules, contents);
  return contents;
}

function contentsOf(rules: readonly PolicyRule[]): RuleContents {
  const enforced = rules.filter(({ mode }) => mode === 'enforce');
  const byContent = [...Map.groupBy(enforced, contentOf)].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    key: byContent.map(([content]) => content).join('\n'),
    rules: byContent.flatMap(([, same], position) =>
      same.slice(0, 1).map((rule): PolicyRule => ({ ...rule, id: String(position) })),
    ),
    idsAt: (position) => (byContent[Number(position)]?.[1] ?? []).map(({ id }) => id).sort(),
  };
}

/** Equal for rules that do the same. */
export function contentOf(rule: PolicyRule): string {
  const isList = factsOf(rule.ruleType).list !== null;
  return JSON.stringify([rule.ruleType, (isList ? entriesOf(rule) : Object.entries(rule.ruleValue)).toSorted()]);
}
