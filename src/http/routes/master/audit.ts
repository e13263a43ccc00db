import { listAudit } from '../../../admin/audit/audit.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import { queryParameter } from '../../request/query-parameter.ts';
import { answer, type MasterRouter } from './master-route.ts';
import { pageRequest } from './page-request.ts';

/** `/v1/master/audit`: who changed what. */
export function auditRoutes({ router, deps, authenticated }: MasterRouter): void {
  router.get('/v1/master/audit', authenticated, async (ctx) => {
    const request = {
      ...pageRequest(ctx),
      action: queryParameter(ctx, 'action'),
      targetId: queryParameter(ctx, 'targetId'),
      from: queryParameter(ctx, 'from'),
      to: queryParameter(ctx, 'to'),
    };
    answer(ctx, await deps.store.read((db) => listAudit(db, actorOf(ctx), request)));
  });
}
