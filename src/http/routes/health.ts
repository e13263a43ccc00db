import type Router from '@koa/router';
import type { RequestState } from '../state.ts';

/** Why the gateway cannot serve, or undefined when it can. */
export type Readiness = () => Promise<string | undefined>;

/** `/health`: the process lives. `/ready`: it can decide and record calls; 503 with the reason otherwise. Both listeners have them. */
export function healthRoutes(router: Router<RequestState>, readiness: Readiness): void {
  router.get('/health', (ctx) => {
    ctx.body = { status: 'ok' };
  });
  router.get('/ready', async (ctx) => {
    const reason = await readiness();
    ctx.status = reason === undefined ? 200 : 503;
    ctx.body = reason === undefined ? { status: 'ready' } : { status: 'not_ready', reason };
  });
}
