import { effectOf } from '../../domain/iam-rule.ts';
import type { ExplainedFlips, PolicyDecision, PolicyInput } from '../../generated/types.ts';
import type { WorldRule, WorldSubject } from '../world/world.ts';

/** Judges a request without some of the rules. */
export type JudgeWithout = (without: ReadonlySet<string>) => PolicyDecision;

/** Sets of rules that are tried at most, and the largest that is. */
const MAX_TRIES = 2000;
const MAX_SIZE = 3;

/** The smallest sets of rules without which the outcome would be the other one; every set is tried by the policy. @throws PolicyFailure */
export function smallestFlips(
  judge: JudgeWithout,
  subjects: readonly WorldSubject[],
  input: PolicyInput,
  decision: PolicyDecision,
): ExplainedFlips {
  return decision.permitted.length === 0 ? opening(judge, input, decision) : closing(judge, subjects);
}

/**
 * A candidate passes when none of its violations is left, and a violation is gone only without all of its rules: a deny kind
 * then matches no more, an allow kind of which none matched then restricts no more.
 */
function opening(judge: JudgeWithout, input: PolicyInput, { violations }: PolicyDecision): ExplainedFlips {
  const sets = input.candidates.map(({ id }) => {
    const against = violations.filter(({ candidate }) => candidate === undefined || candidate === id);
    return [...new Set(against.flatMap(({ ruleIds }) => ruleIds))].sort();
  });
  const smallest = Math.min(...sets.map(({ length }) => length));
  const distinct = new Map(sets.filter(({ length }) => length === smallest).map((set) => [set.join(' '), set]));
  return {
    sets: [...distinct.values()].filter((set) => judge(new Set(set)).permitted.length > 0),
    exhaustive: true,
  };
}

/** Without a deny rule nothing is denied that was not, so allow rules are tried: sets in the order of their sizes. */
function closing(judge: JudgeWithout, subjects: readonly WorldSubject[]): ExplainedFlips {
  const allowing = subjects.flatMap(({ rules }) =>
    [...Map.groupBy(rules.filter(isEnforcedAllow), ({ ruleType }) => ruleType).values()]
      // Without its only rule a kind restricts no more.
      .filter(({ length }) => length > 1)
      .flatMap((ofKind) => ofKind.map(({ id }) => id)),
  );
  let tries = 0;
  for (let size = 1; size <= Math.min(MAX_SIZE, allowing.length); size += 1) {
    const found: string[][] = [];
    for (const set of subsets(allowing, size)) {
      tries += 1;
      if (tries > MAX_TRIES) return { sets: found, exhaustive: false };
      if (judge(new Set(set)).permitted.length === 0) found.push(set.toSorted());
    }
    if (found.length > 0) return { sets: found, exhaustive: true };
  }
  return { sets: [], exhaustive: allowing.length <= MAX_SIZE };
}

const isEnforcedAllow = ({ mode, ruleType }: WorldRule): boolean =>
  mode === 'enforce' && effectOf(ruleType) === 'allow';

function* subsets(items: readonly string[], size: number): Generator<string[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (const [index, first] of items.entries()) {
    for (const rest of subsets(items.slice(index + 1), size - 1)) yield [first, ...rest];
  }
}
