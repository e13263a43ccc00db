import { readUsageRequest, type UsageRequest } from '../../../admin/usage/usage-query.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryObject } from '../../request/query-parameter.ts';
import type { MasterDeps } from './master-route.ts';

/** `/v1/master/usage`: what calls were made and what they cost, as JSON or CSV. */
export function usageHandlers(deps: MasterDeps) {
  const { store, clock, usageReporter } = deps;

  return {
    getUsage: async (ctx) => {
      const request = await store.read((db) => readUsageRequest(db, actorOf(ctx), queryObject(ctx), clock.now()));
      const { bytes, nextCursor } = await usageReporter.report(request);
      ctx.set('cache-control', 'no-store');
      if (request.format === 'csv') {
        ctx.set('content-disposition', `attachment; filename="${fileName(request)}"`);
        // A table has no place for it.
        if (nextCursor !== null) ctx.set('x-next-cursor', nextCursor);
      }
      ctx.type = request.format === 'csv' ? 'text/csv; charset=utf-8' : 'application/json';
      ctx.body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    },
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `usage-2026-01-01-2026-01-31.csv`, by the first and the last day. */
function fileName({ from, to }: UsageRequest): string {
  const day = (time: number): string => new Date(time).toISOString().slice(0, 10);
  return `usage-${day(from)}-${day(to - 1)}.csv`;
}
