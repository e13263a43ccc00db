import { changeMember, getMember, listMembers, removeMember } from '../../../admin/tenants/members.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { answer, type MasterRouter, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/members` and `/v1/master/members/{member}` (membership id, or e-mail). They come by invitation. */
export function memberRoutes({ router, deps, authenticated, jsonBody }: MasterRouter): void {
  const { store } = deps;

  router.get('/v1/master/members', authenticated, async (ctx) => {
    const page = pageRequest(ctx);
    answer(ctx, await store.read((db) => listMembers(db, actorOf(ctx), page)));
  });
  router.get('/v1/master/members/:member', authenticated, async (ctx) => {
    answer(ctx, await store.read((db) => getMember(db, actorOf(ctx), pathParameter(ctx, 'member'))));
  });
  router.patch('/v1/master/members/:member', authenticated, jsonBody, async (ctx) => {
    const member = pathParameter(ctx, 'member');
    answer(ctx, await store.write((db, now) => changeMember(db, actorOf(ctx), member, ctx.state.body, now)));
  });
  router.delete('/v1/master/members/:member', authenticated, async (ctx) => {
    const member = pathParameter(ctx, 'member');
    answer(ctx, await store.write((db, now) => removeMember(db, actorOf(ctx), member, now)));
  });
}
