import { changeGroup, deleteGroup, readGroupDeletion, readGroupPlan } from '../../admin/rules/groups.ts';
import { changeJudged } from '../../admin/rules/judged-change.ts';
import type { GroupChangeAnswer, GroupDeletion } from '../../generated/types.ts';
import { judgeWidening } from './judge-widening.ts';
import { groupId } from './references.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

/**
 * Changes a group as the server does, but judges in this process what that newly permits.
 * @param reference its id or name @param bodyFor makes a `GroupPatch`
 */
export function runGroupChange(
  env: Environment,
  org: string | undefined,
  reference: string,
  bodyFor: (workspace: Workspace) => object,
): Promise<GroupChangeAnswer> {
  return changeJudged({
    plan: () =>
      inWorkspace(env, 'read', org, (workspace) =>
        readGroupPlan(workspace.db, workspace.actor, groupId(workspace, reference), bodyFor(workspace)),
      ),
    judge: (plan) => judgeWidening(env, org, plan),
    write: (judged) =>
      inWorkspace(env, 'write', org, (workspace) => {
        const { db, actor, now } = workspace;
        return changeGroup(db, actor, groupId(workspace, reference), bodyFor(workspace), now, judged);
      }),
  });
}

/** The same of a deletion. */
export function runGroupDeletion(
  env: Environment,
  org: string | undefined,
  reference: string,
  failOnNewAccess: boolean,
): Promise<GroupDeletion> {
  return changeJudged({
    plan: () =>
      inWorkspace(env, 'read', org, (workspace) =>
        readGroupDeletion(workspace.db, workspace.actor, groupId(workspace, reference), failOnNewAccess),
      ),
    judge: (plan) => judgeWidening(env, org, plan),
    write: (judged) =>
      inWorkspace(env, 'write', org, (workspace) => {
        const { db, actor, now } = workspace;
        return deleteGroup(db, actor, groupId(workspace, reference), failOnNewAccess, now, judged);
      }),
  });
}
