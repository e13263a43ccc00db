import { listAudit } from '../../../admin/audit/audit.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterDeps } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/audit`: who changed what. */
export function auditHandlers(deps: MasterDeps) {
  return {
    listAudit: async (ctx) => {
      const request = {
        ...pageRequest(ctx),
        action: queryParameter(ctx, 'action'),
        targetId: queryParameter(ctx, 'targetId'),
        from: queryParameter(ctx, 'from'),
        to: queryParameter(ctx, 'to'),
      };
      answer(ctx, await deps.store.read((db) => listAudit(db, actorOf(ctx), request)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
