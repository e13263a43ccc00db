import { changeOrganization, getOrganization } from '../../../admin/tenants/organizations.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { answer, type MasterDeps } from './master-route.ts';

/** `/v1/master/organization`: the one that the master key belongs to. */
export function organizationHandlers(deps: MasterDeps) {
  return {
    getOrganization: async (ctx) => {
      answer(ctx, await deps.store.read((db) => getOrganization(db, actorOf(ctx))));
    },
    changeOrganization: async (ctx) => {
      answer(ctx, await deps.store.write((db, now) => changeOrganization(db, actorOf(ctx), ctx.state.body, now)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
