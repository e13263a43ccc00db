import { formatTime } from '../../domain/time.ts';
import type { PolicyStatus } from '../../policy/active-policy.ts';
import type { CommonId } from '../operations/common.ts';
import type { Handlers } from '../register.ts';

/** Why the gateway cannot serve, or undefined when it can. */
export type Readiness = () => Promise<string | undefined>;

/** For anyone: neither where the policy comes from, nor more than a word on what is wrong with another one. */
const policyOf = ({ digest, revision, activatedAt, refusal }: PolicyStatus) => ({
  digest: digest.slice(0, 12),
  revision: revision ?? null,
  activatedAt: formatTime(activatedAt),
  ...(refusal === undefined ? {} : { refused: refusal.code }),
});

/** `/health`: the process lives. `/ready`: it can decide and record calls; 503 with the reason otherwise. Both listeners have them. */
export const healthHandlers = (readiness: Readiness, policyStatus: () => PolicyStatus) =>
  ({
    getHealth: (ctx) => {
      ctx.body = { status: 'ok' };
    },
    getReadiness: async (ctx) => {
      const reason = await readiness();
      ctx.status = reason === undefined ? 200 : 503;
      ctx.body =
        reason === undefined ? { status: 'ready', policy: policyOf(policyStatus()) } : { status: 'not_ready', reason };
    },
  }) satisfies Partial<Handlers<CommonId>>;
