import { changeGroup, deleteGroup, readGroupDeletion, readGroupPlan } from '../../admin/rules/groups.ts';
import type { GroupChangeAnswer, GroupDeletion } from '../../generated/types.ts';
import { groupId } from './references.ts';
import { runJudged } from './run-judged.ts';
import type { Environment, Workspace } from './workspace.ts';

/** Changes a group. @param reference its id or name @param bodyFor makes a `GroupPatch` */
export const runGroupChange = (
  env: Environment,
  org: string | undefined,
  reference: string,
  bodyFor: (workspace: Workspace) => object,
): Promise<GroupChangeAnswer> =>
  runJudged(env, org, {
    plan: (workspace) =>
      readGroupPlan(workspace.db, workspace.actor, groupId(workspace, reference), bodyFor(workspace)),
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return changeGroup(db, actor, groupId(workspace, reference), bodyFor(workspace), now, judged);
    },
  });

/** Deletes a group. @param reference its id or name */
export const runGroupDeletion = (
  env: Environment,
  org: string | undefined,
  reference: string,
  failOnNewAccess: boolean,
): Promise<GroupDeletion> =>
  runJudged(env, org, {
    plan: (workspace) =>
      readGroupDeletion(workspace.db, workspace.actor, groupId(workspace, reference), failOnNewAccess),
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return deleteGroup(db, actor, groupId(workspace, reference), failOnNewAccess, now, judged);
    },
  });
