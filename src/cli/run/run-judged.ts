import { type ChangePlan, changeJudged, type JudgedChange } from '../../admin/rules/judged-change.ts';
import type { RuleReplacement } from '../../workbench/analysis/drafts.ts';
import type { Regrouping } from '../../workbench/analysis/widening.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface Steps<Plan, Answer> {
  plan(workspace: Workspace): Plan;
  /** @throws StaleRules */
  write(workspace: Workspace, judged: JudgedChange): Answer;
}

/** Writes rules, or who is in a group, as the server does, but judges in this process what that newly permits. */
export const runJudged = <Plan extends ChangePlan & (RuleReplacement | Regrouping), Answer>(
  env: Environment,
  org: string | undefined,
  { plan, write }: Steps<Plan, Answer>,
): Promise<Answer> =>
  changeJudged({
    plan: () => inWorkspace(env, 'read', org, plan),
    judge: async (planned: Plan) => {
      // Loaded only where something may be newly permitted, with the policy engine: all else takes a fraction of the time.
      const { judgeWidening } = await import('./judge-widening.ts');
      return judgeWidening(env, org, planned);
    },
    write: (judged) => inWorkspace(env, 'write', org, (workspace) => write(workspace, judged)),
  });
