import {
  changeGroup,
  createGroup,
  deleteGroup,
  type GroupPlan,
  getGroup,
  listGroups,
  readGroupDeletion,
  readGroupPlan,
} from '../../../admin/rules/groups.ts';
import { changeJudged } from '../../../admin/rules/judged-change.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { flag } from '../../request/query-parameter.ts';
import { wideningIn } from './iam-rules.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/groups` and `/v1/master/groups/{id}`. */
export function groupHandlers({ store, analyst }: MasterDeps) {
  const judgeFor =
    (organizationId: string) =>
    ({ groupId, holderIds }: GroupPlan) =>
      analyst.analyse({ kind: 'regrouping', organizationId, groupId, holderIds }).then(wideningIn);

  return {
    listGroups: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listGroups(db, actorOf(ctx), page)));
    },
    createGroup: async (ctx) => {
      answer(ctx, await store.write((db, now) => createGroup(db, actorOf(ctx), ctx.state.body, now)), 201);
    },
    getGroup: async (ctx) => {
      answer(ctx, await store.read((db) => getGroup(db, actorOf(ctx), pathParameter(ctx, 'id'))));
    },
    changeGroup: async (ctx) => {
      const [actor, id, { body }] = [actorOf(ctx), pathParameter(ctx, 'id'), ctx.state];
      const changed = await changeJudged({
        plan: () => store.read((db) => readGroupPlan(db, actor, id, body)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => changeGroup(db, actor, id, body, now, judged)),
      });
      answer(ctx, changed);
    },
    deleteGroup: async (ctx) => {
      const [actor, id, mustNotWiden] = [actorOf(ctx), pathParameter(ctx, 'id'), flag(ctx, 'failOnNewAccess')];
      const deleted = await changeJudged({
        plan: () => store.read((db) => readGroupDeletion(db, actor, id, mustNotWiden)),
        judge: judgeFor(actor.organizationId),
        write: (judged) => store.write((db, now) => deleteGroup(db, actor, id, mustNotWiden, now, judged)),
      });
      answer(ctx, deleted);
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
