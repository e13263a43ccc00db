import { isDeepStrictEqual } from 'node:util';
import { ApiError } from '../../domain/errors.ts';
import { type CanonicalRule, effectOf } from '../../domain/iam-rule.ts';
import { asCreate, type RuleContent, storedRule } from '../../domain/rule-content.ts';
import type { RuleCreate, RuleWidening } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { changeNumber } from '../../store/rules/policy-subjects.ts';
import type { RuleRecord } from '../../store/rules/rules.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import type { Actor } from '../audit/audit-trail.ts';
import type { RuleSubject } from './rule-owner.ts';

/** A write that can be made as things are, for judging what it permits. */
export interface ChangePlan {
  /** The revision of the organization's rules for which the plan was made. */
  readonly ruleRevision: number;
  /** Whether it can permit anything new at all. */
  readonly matters: boolean;
  readonly failOnNewAccess: boolean;
}

export interface RulePlan extends ChangePlan {
  readonly subject: Pick<RuleSubject, 'scope' | 'id'>;
  readonly ruleId: string;
  /** The rule as it would be; null: there would be none. */
  readonly rule: RuleCreate | null;
}

/** Access that a change adds, for one revision of the organization's rules; null: unknown. */
export interface JudgedChange {
  readonly ruleRevision: number;
  readonly widens: RuleWidening | null;
}

/** The rules are no longer those for which a change was judged. */
export class StaleRules extends Error {
  override readonly name = 'StaleRules';
}

/** A write that is judged before it is made. */
interface JudgedWrite<Plan extends { readonly failOnNewAccess: boolean }, Judgement, Answer> {
  plan(): Promise<Plan>;
  /** Judges which access the plan adds. @throws ApiError 5xx when it takes too long, or too many wait */
  judge(plan: Plan): Promise<Judgement>;
  /** @param judgement null: nobody knows. @throws StaleRules */
  write(plan: Plan, judgement: Judgement | null): Promise<Answer>;
}

/** Times that a change is judged. */
const MOST_JUDGINGS = 3;

/**
 * Changes rules after finding out what that newly permits: outside the writing thread, so that nobody waits for it, and again
 * where someone else changed rules meanwhile. Where that cannot be found out, also because they keep changing, only a change that
 * must not widen anything fails.
 */
export async function writeJudged<Plan extends { readonly failOnNewAccess: boolean }, Judgement, Answer>({
  plan,
  judge,
  write,
}: JudgedWrite<Plan, Judgement, Answer>): Promise<Answer> {
  for (let judgings = 0; judgings <= MOST_JUDGINGS; judgings += 1) {
    const planned = await plan();
    const isUnjudged = judgings === MOST_JUDGINGS;
    if (isUnjudged && planned.failOnNewAccess) break;
    const judgement = isUnjudged ? null : await judgedOrNull(planned, judge);
    try {
      return await write(planned, judgement);
    } catch (error) {
      if (!(error instanceof StaleRules)) throw error;
    }
  }
  throw new ApiError(503, 'overloaded', 'The rules keep changing: try again.');
}

async function judgedOrNull<Plan extends { readonly failOnNewAccess: boolean }, Judgement>(
  plan: Plan,
  judge: (plan: Plan) => Promise<Judgement>,
): Promise<Judgement | null> {
  try {
    return await judge(plan);
  } catch (error) {
    if (plan.failOnNewAccess || !(error instanceof ApiError) || error.status < 500) throw error;
    return null;
  }
}

interface JudgedSteps<Plan, Answer> {
  plan(): Promise<Plan>;
  /** @throws ApiError 5xx when it takes too long, or too many wait */
  judge(plan: Plan): Promise<RuleWidening>;
  /** @throws StaleRules */
  write(judged: JudgedChange): Promise<Answer>;
}

const NOTHING: RuleWidening = { count: 0, cells: [] };

/** Makes, changes or removes a rule so, or changes who is in a group. */
export const changeJudged = <Plan extends ChangePlan, Answer>({
  plan,
  judge,
  write,
}: JudgedSteps<Plan, Answer>): Promise<Answer> =>
  writeJudged({
    plan,
    judge: async (planned) => (planned.matters ? judge(planned) : NOTHING),
    write: ({ ruleRevision }: Plan, widens) => write({ ruleRevision, widens }),
  });

/**
 * Returns the access that a change adds, by the judgement made before its write; a change that cannot add access needs no
 * judgement.
 * @param plan of the change as things are now
 * @throws StaleRules, ApiError 409 for new access that is not allowed
 */
export function judgedWidening(
  judged: JudgedChange | undefined,
  { matters, ruleRevision, failOnNewAccess }: ChangePlan,
): RuleWidening | null {
  if (!matters) return NOTHING;
  const { widens = null } = judged ?? {};
  if (widens !== null && judged?.ruleRevision !== ruleRevision) throw new StaleRules();
  if (failOnNewAccess && widens?.count !== 0) throw newAccess(widens);
  return widens;
}

/** Cells that a refusal names. */
const NAMED = 3;

/** A change that was made and undone, to judge it. */
interface RehearsedPlan {
  readonly changeNumber: number;
  /** Whether it changes anything that decides calls. */
  readonly matters: boolean;
  readonly failOnNewAccess: boolean;
}

interface RehearsedSteps<Plan, Answer> {
  plan(): Promise<Plan>;
  /** @throws ApiError 5xx when it takes too long, or too many wait */
  judge(plan: Plan): Promise<RuleWidening>;
  /** @param check to be called in the transaction before anything is written: the access that the change adds; null: nobody knows */
  write(check: (db: Database) => RuleWidening | null): Promise<Answer>;
}

/** Makes any change so that it is judged as one of a rule is: as long as nothing else that decides calls has changed meanwhile. */
export const changeRehearsed = <Plan extends RehearsedPlan, Answer>({
  plan,
  judge,
  write,
}: RehearsedSteps<Plan, Answer>): Promise<Answer> =>
  writeJudged({
    plan,
    judge: async (planned) => (planned.matters ? judge(planned) : NOTHING),
    write: (planned: Plan, widens) =>
      write((db) => {
        if (widens !== null && changeNumber(db) !== planned.changeNumber) throw new StaleRules();
        if (planned.failOnNewAccess && widens?.count !== 0) throw newAccess(widens);
        return widens;
      }),
  });

/** Refuses a change that permits what was not permitted. @param widens null: nobody knows */
export function newAccess(widens: RuleWidening | null): ApiError {
  if (widens === null)
    return new ApiError(409, 'new_access', 'The change is refused: what it would newly permit is not known.');
  const named = widens.cells.slice(0, NAMED).map(({ holder, mapping }) => `${mapping} for ${holder.name || holder.id}`);
  const more = widens.count > named.length ? ` and ${widens.count - named.length} more` : '';
  return new ApiError(409, 'new_access', `The change is refused: it would newly permit ${named.join(', ')}${more}.`);
}

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
 * an allow rule to others of its kind, which are a union (policy/reference.md, "How a decision is made"). Inactive rules, and those in
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
