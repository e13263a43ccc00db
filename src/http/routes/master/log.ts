import { readLogRequest, readRefusedListRequest, seenBy } from '../../../admin/log/log-query.ts';
import { actorOf } from '../../middleware/authenticate-master.ts';
import type { ManagementId } from '../../operations/management.ts';
import type { Handlers } from '../../register.ts';
import { queryObject } from '../../request/query-parameter.ts';
import type { AppContext } from '../../state.ts';
import { answerWritten, type MasterDeps, pathParameter } from './master-route.ts';

/** `/v1/master/calls`, `/v1/master/decisions`, `/v1/master/requests`: what was asked, how it was decided, what was refused before that. */
export function logHandlers({ store, logReader }: MasterDeps) {
  const list = async (ctx: AppContext, what: 'calls' | 'decisions'): Promise<void> => {
    const request = await store.read((db) => readLogRequest(db, actorOf(ctx), queryObject(ctx)));
    answerWritten(ctx, await logReader.read(actorOf(ctx).organizationId, { what, ...request }));
  };
  const one = async (ctx: AppContext, what: 'call' | 'decision' | 'request'): Promise<void> => {
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
