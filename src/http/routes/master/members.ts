import { changeMember, getMember, listMembers, removeMember } from '../../../admin/tenants/members.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/members` and `/v1/master/members/{member}` (membership id, or e-mail). They come by invitation. */
export function memberHandlers(deps: MasterDeps) {
  const { store } = deps;

  return {
    listMembers: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listMembers(db, actorOf(ctx), page)));
    },
    getMember: async (ctx) => {
      answer(ctx, await store.read((db) => getMember(db, actorOf(ctx), pathParameter(ctx, 'member'))));
    },
    changeMember: async (ctx) => {
      const member = pathParameter(ctx, 'member');
      answer(ctx, await store.write((db, now) => changeMember(db, actorOf(ctx), member, ctx.state.body, now)));
    },
    deleteMember: async (ctx) => {
      const member = pathParameter(ctx, 'member');
      answer(ctx, await store.write((db, now) => removeMember(db, actorOf(ctx), member, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
