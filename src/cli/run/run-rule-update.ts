import { changeRule, getRule, readRulePlan } from '../../admin/rules/iam-rules.ts';
import { changeJudged } from '../../admin/rules/judged-change.ts';
import type { IamRule, RuleChangeAnswer } from '../../generated/types.ts';
import { judgeWidening } from './judge-widening.ts';
import { ruleOwner } from './references.ts';
import { ruleWriteOf } from './rule-write.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

/**
 * Changes a rule as the server does, but judges in this process what that newly permits.
 * @param bodyFor makes a `RulePatch` for the rule as it is
 */
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
  return changeJudged({
    plan: () =>
      inWorkspace(env, 'read', org, (workspace) => {
        const { db, actor, owner, body } = steps(workspace);
        return readRulePlan(db, actor, owner, id, body);
      }),
    judge: (plan) => judgeWidening(env, org, plan),
    write: (judged) =>
      inWorkspace(env, 'write', org, (workspace) => {
        const { db, actor, owner, body, write } = steps(workspace);
        return changeRule(db, actor, owner, id, body, write, judged);
      }),
  });
}
