import type { CommonId } from '../operations/common.ts';
import type { Handlers } from '../register.ts';

/** Why the gateway cannot serve, or undefined when it can. */
export type Readiness = () => Promise<string | undefined>;

/** `/health`: the process lives. `/ready`: it can decide and record calls; 503 with the reason otherwise. Both listeners have them. */
export const healthHandlers = (readiness: Readiness) =>
  ({
    getHealth: (ctx) => {
      ctx.body = { status: 'ok' };
    },
    getReadiness: async (ctx) => {
      const reason = await readiness();
      ctx.status = reason === undefined ? 200 : 503;
      ctx.body = reason === undefined ? { status: 'ready' } : { status: 'not_ready', reason };
    },
  }) satisfies Partial<Handlers<CommonId>>;
