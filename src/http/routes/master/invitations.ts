import { acceptInvitation } from '../../../admin/sign-in/accept-invitation.ts';
import {
  createInvitation,
  getInvitation,
  listInvitations,
  revokeInvitation,
} from '../../../admin/tenants/invitations.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps, pathParameter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/invitations`, `/v1/master/invitations/{id}` and, without a master key, `/v1/master/invitations/accept`. */
export function invitationHandlers(deps: MasterDeps) {
  const { store, clock, peppers } = deps;

  return {
    listInvitations: async (ctx) => {
      const page = pageRequest(ctx);
      answer(ctx, await store.read((db) => listInvitations(db, actorOf(ctx), page, clock.now())));
    },
    createInvitation: async (ctx) => {
      const made = await store.write((db, now) =>
        createInvitation(db, actorOf(ctx), ctx.state.body, { now, pepper: peppers[0] }),
      );
      answer(ctx, made, 201);
    },
    acceptInvitation: async (ctx) => {
      const accepted = await store.write((db, now) =>
        acceptInvitation(db, ctx.state.body, { now, peppers, by: 'person' }),
      );
      answer(ctx, accepted, 201);
    },
    getInvitation: async (ctx) => {
      answer(ctx, await store.read((db) => getInvitation(db, actorOf(ctx), pathParameter(ctx, 'id'), clock.now())));
    },
    deleteInvitation: async (ctx) => {
      const id = pathParameter(ctx, 'id');
      answer(ctx, await store.write((db, now) => revokeInvitation(db, actorOf(ctx), id, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
