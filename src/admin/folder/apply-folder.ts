import { checkVisibleText } from '../../domain/check-shape.ts';
import { ApiError } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { asCreate } from '../../domain/rule-content.ts';
import type { AccessDiff, PolicyPlan, PolicyPlanChange } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { listRules, type RuleRecord, type RuleStep, writeRules } from '../../store/rules/rules.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, recordChange } from '../audit/audit-trail.ts';
import { checkPlan, written } from '../rules/iam-rules.ts';
import { newAccess, StaleRules } from '../rules/judged-change.ts';
import { compileRules, ruleChange } from '../rules/rule-edits.ts';
import { checkRulesChangeable, getRuleSubject, type RuleSubject } from '../rules/rule-owner.ts';
import { contentOf } from './match-rules.ts';
import type { FolderPlan, PlannedRule } from './plan-folder.ts';

/** A change whose rule has an id, also where it is made only now. */
type DoneRule = PlannedRule & { readonly id: string };

export interface AppliedPlan {
  readonly plan: FolderPlan;
  /** The changes with the ids of new rules. */
  readonly done: readonly DoneRule[];
}

/**
 * Does what was planned, all of it or nothing, with an entry in the audit log for the apply and one for each rule.
 * @param revision of the folder in git, for the audit log @param now epoch ms
 * @throws ApiError 400 for a revision that cannot be read; StaleRules when the rules are no longer those that the plan was made for
 */
export function applyFolder(
  db: Database,
  actor: Actor,
  plan: FolderPlan,
  { revision, now }: { readonly revision?: string | undefined; readonly now: number },
): AppliedPlan {
  checkVisibleText(revision ?? '', '/revision', '/revision');
  return db.transaction(() => {
    const { organizationId } = actor;
    if (getOrganization(db, organizationId).ruleRevision !== plan.ruleRevision) throw new StaleRules();
    const done = plan.changes.map((change): DoneRule => ({ ...change, id: change.before?.id ?? newId('rule') }));
    for (const changes of Map.groupBy(done, ({ subject }) => subject.id).values()) {
      changeRulesOf(db, actor, changes, plan.source, now);
    }
    if (done.length > 0) recordApply(db, actor, plan, revision, now);
    return { plan, done };
  });
}

function recordApply(db: Database, actor: Actor, plan: FolderPlan, revision: string | undefined, now: number): void {
  const { source: name, digest, prune, ruleRevision, changes } = plan;
  const byAction = Object.entries(Object.groupBy(changes, ({ action }) => action));
  const before = { id: actor.organizationId, name, ruleRevision };
  const after = {
    ...before,
    ruleRevision: getOrganization(db, actor.organizationId).ruleRevision,
    revision: revision ?? null,
    digest,
    prune,
    changes: Object.fromEntries(byAction.map(([action, all]) => [action, all.length])),
  };
  recordChange(db, actor, 'policy', 'apply', { before, after }, now);
}

/** Changes rules of one owner, who may have left since the plan was made. */
function changeRulesOf(db: Database, actor: Actor, changes: readonly DoneRule[], source: string, now: number): void {
  const [first] = changes;
  if (first === undefined) return;
  const subject = getRuleSubject(db, actor, first.owner);
  checkRulesChangeable(actor, subject);
  for (const { after } of changes) if (after !== null) checkPlan(db, actor, after.ruleType);
  const { organizationId } = actor;
  // Names become free before others take them.
  const [removals, others] = [
    changes.filter(({ after }) => after === null),
    changes.filter(({ after }) => after !== null),
  ];
  const steps = [...removals, ...others].map((change) => stepOf(change, source));
  writeRules(db, organizationId, subject.id, steps, compileRules, now);
  const present = new Map(listRules(db, organizationId, subject.id).map((rule) => [rule.id, rule]));
  for (const { id, before } of changes) recordRule(db, actor, subject, before, present.get(id), now);
}

function stepOf({ id, name, before, after }: DoneRule, source: string): RuleStep {
  if (after === null) return { delete: id };
  const rule = { ...asCreate(after), managedBy: source, managedName: name };
  return before === null ? { insert: { id, ...rule } } : { update: rule, id };
}

function recordRule(
  db: Database,
  actor: Actor,
  subject: RuleSubject,
  was: RuleRecord | null,
  is: RuleRecord | undefined,
  now: number,
): void {
  const [before, after] = [was === null ? null : written(was, subject), is === undefined ? null : written(is, subject)];
  if (after === null) {
    if (before !== null) recordChange(db, actor, 'rule', 'delete', { before, after }, now);
  } else if (before === null) recordChange(db, actor, 'rule', 'create', { before, after }, now);
  else recordChange(db, actor, 'rule', 'update', ruleChange(before, after), now);
}

/** Pairs of a key or member and a mapping that a plan newly permits, whether there is a credential to call it or not. */
export const newlyPermitted = ({ gained, withoutCredential }: AccessDiff): number => gained + withoutCredential.gained;

/** Refuses (409) what permits something new. @param access null: nobody knows */
export function checkNoNewAccess(access: AccessDiff | null): void {
  const count = access === null ? null : newlyPermitted(access);
  if (count === 0) return;
  if (count === null) throw newAccess(null);
  const pairs = count === 1 ? '1 pair' : `${count} pairs`;
  throw new ApiError(
    409,
    'new_access',
    `The change is refused: it would newly permit ${pairs} of a key or member and a mapping.`,
  );
}

/** A plan as the API shows it. @param access null: not known */
export const planView = (plan: FolderPlan, access: AccessDiff | null): PolicyPlan =>
  shown(
    plan,
    plan.changes.map((change) => changeView(change, change.before?.id ?? null)),
    false,
    access,
  );

/** The view of a plan that was applied. */
export const appliedView = ({ plan, done }: AppliedPlan, access: AccessDiff | null): PolicyPlan =>
  shown(
    plan,
    done.map((change) => changeView(change, change.id)),
    true,
    access,
  );

function shown(
  { source, digest, prune, ruleRevision, unchanged, warnings }: FolderPlan,
  changes: PolicyPlanChange[],
  applied: boolean,
  access: AccessDiff | null,
): PolicyPlan {
  const texts = warnings.map(({ pointer, text }) => `${pointer}: ${text}`);
  return { applied, source, digest, prune, ruleRevision, changes, unchanged, warnings: texts, access };
}

const changeView = (
  { action, subject: { scope, id, name: ownerName }, name, before, after }: PlannedRule,
  ruleId: string | null,
): PolicyPlanChange => ({
  action,
  owner: { scope, id, name: ownerName },
  name,
  ruleId,
  before: before === null ? null : asCreate(contentOf(before)),
  after: after === null ? null : asCreate(after),
});
