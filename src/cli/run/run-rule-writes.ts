import {
  changeRule,
  createRule,
  deleteRule,
  getRule,
  readRuleCreation,
  readRuleDeletion,
  readRulePlan,
} from '../../admin/rules/iam-rules.ts';
import type { RuleOwner } from '../../admin/rules/rule-owner.ts';
import type { IamRule, RuleChangeAnswer, RuleCreateAnswer, RuleDeletion } from '../../generated/types.ts';
import { ruleOwner } from './references.ts';
import { ruleWriteOf } from './rule-write.ts';
import { runJudged } from './run-judged.ts';
import type { Environment, Workspace } from './workspace.ts';

/** Makes a rule. @param body a `RuleCreateRequest` */
export const runRuleCreation = (
  env: Environment,
  org: string | undefined,
  ownerIn: (workspace: Workspace) => RuleOwner,
  body: object,
): Promise<RuleCreateAnswer> =>
  runJudged(env, org, {
    plan: (workspace) => readRuleCreation(workspace.db, workspace.actor, ownerIn(workspace), body),
    write: (workspace, judged) => {
      const { db, actor } = workspace;
      return createRule(db, actor, ownerIn(workspace), body, ruleWriteOf(workspace), judged);
    },
  });

/** Changes a rule. @param bodyFor makes a `RulePatch` for the rule as it is */
export function runRuleUpdate(
  env: Environment,
  org: string | undefined,
  id: string,
  bodyFor: (present: IamRule) => object,
): Promise<RuleChangeAnswer> {
  const steps = (workspace: Workspace) => {
    const { db, actor } = workspace;
    const owner = ruleOwner(workspace, id);
    const write = ruleWriteOf(workspace);
    return { db, actor, owner, write, body: bodyFor(getRule(db, actor, owner, id, write).rule) };
  };
  return runJudged(env, org, {
    plan: (workspace) => {
      const { db, actor, owner, body } = steps(workspace);
      return readRulePlan(db, actor, owner, id, body);
    },
    write: (workspace, judged) => {
      const { db, actor, owner, body, write } = steps(workspace);
      return changeRule(db, actor, owner, id, body, write, judged);
    },
  });
}

/** Removes a rule. */
export const runRuleDeletion = (
  env: Environment,
  org: string | undefined,
  id: string,
  failOnNewAccess: boolean,
): Promise<RuleDeletion> =>
  runJudged(env, org, {
    plan: (workspace) => {
      const { db, actor } = workspace;
      return readRuleDeletion(db, actor, ruleOwner(workspace, id), id, failOnNewAccess);
    },
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return deleteRule(db, actor, ruleOwner(workspace, id), id, failOnNewAccess, now, judged);
    },
  });
