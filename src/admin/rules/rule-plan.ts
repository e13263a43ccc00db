import { isDeepStrictEqual } from 'node:util';
import { type CanonicalRule, effectOf } from '../../domain/iam-rule.ts';
import { asCreate, type RuleContent, storedRule } from '../../domain/rule-content.ts';
import type { Database } from '../../store/db/database.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import type { Actor } from '../audit/actor.ts';
import type { RulePlan } from './judged-change.ts';
import type { RuleSubject } from './rule-owner.ts';

/** A write of one rule of a subject. */
interface RuleStep {
  readonly subject: RuleSubject;
  readonly ruleId: string;
  /** The subject's other rules. */
  readonly others: readonly RuleRecord[];
  /** Null: there is none yet. */
  readonly before: RuleRecord | null;
  /** Null: there would be none. */
  readonly after: RuleContent | null;
}

/** The plan of a write as things are now. */
export function readPlanOf(
  db: Database,
  { organizationId }: Actor,
  step: RuleStep,
  failOnNewAccess: boolean,
): RulePlan {
  const { subject, ruleId, after } = step;
  const { ruleRevision } = getOrganization(db, organizationId);
  return { subject, ruleId, rule: after && asCreate(after), ruleRevision, matters: canWiden(step), failOnNewAccess };
}

/**
 * Whether a write can permit what was not permitted: one that takes away a deny rule or the only allow rule of a kind, or that adds
 * an allow rule to others of its kind, which are a union (policy/README.md, "How a decision is made"). Inactive rules, and those in
 * mode `report`, are no part of it.
 */
function canWiden({ others, before, after }: RuleStep): boolean {
  const gone = before && isEnforced(before) ? storedRule(before) : null;
  const come = after && isEnforced(after) ? after.canonical : null;
  if (isDeepStrictEqual(gone, come)) return false;
  const hasOther = ({ ruleType }: CanonicalRule) =>
    others.some((each) => isEnforced(each) && each.ruleType === ruleType);
  const isLoosened = gone !== null && (effectOf(gone.ruleType) === 'deny' || !hasOther(gone));
  const isExtended = come !== null && effectOf(come.ruleType) === 'allow' && hasOther(come);
  return isLoosened || isExtended;
}

const isEnforced = ({ status, mode }: Pick<RuleContent, 'status' | 'mode'>): boolean =>
  status === 'active' && mode === 'enforce';
