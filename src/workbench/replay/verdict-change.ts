import type { DenialStep, PolicyInput, PolicyViolation, ReplayChange, ReplayRule } from '../../generated/types.ts';
import { type DenialReason, permittedBy } from '../../policy/denial.ts';
import type { LoggedVerdict } from '../../store/ledger/logged-verdicts.ts';
import type { Judgement } from './judge-again.ts';

/** A rule, and of which group, where it is one's. */
export type ChangeRule = Pick<ReplayRule, 'id' | 'scope' | 'ruleType'> & {
  readonly groupId?: string;
  /** What the package `custom` says. */
  readonly message?: string;
};

/** How a judgement differs from the decision that is on record. */
export interface VerdictChange {
  readonly change: ReplayChange;
  /** The rules that deny on the side that denies, each once. */
  readonly rules: readonly ChangeRule[];
}

/** Undefined: it permits and denies the same. */
export function verdictChange(
  { outcome, violationsJson, reasonJson }: LoggedVerdict,
  input: PolicyInput,
  { decision, reason, recorded }: Judgement,
): VerdictChange | undefined {
  if (outcome === recorded.outcome && violationsJson === recorded.violationsJson) return undefined;
  if (outcome === 'deny') {
    if (reason !== undefined) return undefined;
    const then: DenialStep | null = JSON.parse(reasonJson ?? 'null');
    return { change: 'permitted', rules: then === null ? [] : rulesOf([then]) };
  }
  if (reason !== undefined) return { change: 'denied', rules: rulesOf([reason]) };
  const violations: PolicyViolation[] = JSON.parse(violationsJson);
  const [then, now] = [new Set(permittedBy(input, violations)), new Set(decision.permitted)];
  const gained = now.difference(then);
  if (gained.size > 0) return { change: 'widened', rules: rulesOf(violations.filter(against(gained))) };
  const lost = then.difference(now);
  if (lost.size > 0) return { change: 'narrowed', rules: rulesOf(decision.violations.filter(against(lost))) };
  return undefined;
}

const against =
  (candidates: ReadonlySet<string>) =>
  ({ candidate }: PolicyViolation): boolean =>
    candidate !== undefined && candidates.has(candidate);

/** A denial, or a violation. */
type Denying = Pick<DenialReason, 'scope' | 'group' | 'kind' | 'effect' | 'ruleIds' | 'values'>;

/** By their ids, each once; what the package `custom` of a bundle denies goes by the id that it states. */
function rulesOf(steps: readonly Denying[]): ChangeRule[] {
  const rules = steps.flatMap(({ scope, group, kind, effect, ruleIds, values }) => {
    if (kind === 'custom') {
      const message = values.join(', ');
      return ruleIds.map((id): [string, ChangeRule] => [id, { id, scope, ruleType: 'deny_custom', message }]);
    }
    return ruleIds.map((id): [string, ChangeRule] => {
      const rule = { id, scope, ruleType: `${effect}_${kind}` } as const;
      return [id, group === undefined ? rule : { ...rule, groupId: group }];
    });
  });
  return [...new Map(rules).values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}
