import { listAudit } from '../../admin/audit/audit.ts';
import { readLogRequest, readRefusedListRequest, seenBy } from '../../admin/log/log-query.ts';
import { readUsageRequest, type UsageRequest } from '../../admin/usage/usage-query.ts';
import type { ManagementContext } from '../app-context.ts';
import { actorOf } from '../authenticate.ts';
import type { ManagementId } from '../operations/management-operations.ts';
import { pageRequest, queryObject, queryParameter } from '../query.ts';
import type { Handlers } from '../routes.ts';
import type { RequestContext } from '../state.ts';
import { answer, answerWritten, pathParameter } from './master-route.ts';

/** `/v1/master/calls`, `/v1/master/decisions`, `/v1/master/requests`: what was asked, how it was decided, what was refused before that. */
export function logHandlers({ store, logReader }: ManagementContext) {
  const list = async (ctx: RequestContext, what: 'calls' | 'decisions'): Promise<void> => {
    const request = await store.read((db) => readLogRequest(db, actorOf(ctx), queryObject(ctx)));
    answerWritten(ctx, await logReader.read(actorOf(ctx).organizationId, { what, ...request }));
  };
  const one = async (ctx: RequestContext, what: 'call' | 'decision' | 'request'): Promise<void> => {
    const id = pathParameter(ctx, 'id');
    const actor = actorOf(ctx);
    answerWritten(ctx, await logReader.read(actor.organizationId, { what, by: seenBy(actor), id }));
  };

  return {
    listCalls: (ctx) => list(ctx, 'calls'),
    getCall: (ctx) => one(ctx, 'call'),
    listDecisions: (ctx) => list(ctx, 'decisions'),
    async listRequests(ctx) {
      const request = await store.read((db) => readRefusedListRequest(db, actorOf(ctx), queryObject(ctx)));
      answerWritten(ctx, await logReader.read(actorOf(ctx).organizationId, { what: 'requests', ...request }));
    },
    getRequest: (ctx) => one(ctx, 'request'),
    getDecision: (ctx) => one(ctx, 'decision'),
  } satisfies Partial<Handlers<ManagementId>>;
}

/** `/v1/master/usage`: what calls were made and what they cost, as JSON or CSV. */
export function usageHandlers(app: ManagementContext) {
  const { store, clock, usageReporter } = app;

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

/** `/v1/master/audit`: who changed what. */
export function auditHandlers(app: ManagementContext) {
  return {
    listAudit: async (ctx) => {
      const request = {
        ...pageRequest(ctx),
        action: queryParameter(ctx, 'action'),
        targetId: queryParameter(ctx, 'targetId'),
        from: queryParameter(ctx, 'from'),
        to: queryParameter(ctx, 'to'),
      };
      answer(ctx, await app.store.read((db) => listAudit(db, actorOf(ctx), request)));
    },
  } satisfies Partial<Handlers<ManagementId>>;
}
