import type { Context, Middleware } from 'koa';
import type { Actor } from '../admin/actor.ts';
import type { Principal } from '../core/principal.ts';
import type { Room } from '../net/answer-bounds.ts';

/** What the steps of the pipeline learn about one request, each step's field named after it. */
export interface RequestState {
  /** Ours: on every answer as `x-request-id`, in the log, in metadata. */
  requestId: string;
  /** The caller's own `x-request-id`, if it is well formed. */
  clientRequestId: string | undefined;
  /** Canonical client address, or null when it cannot be determined. */
  clientIp: string | null;
  /** Aborted when the client leaves before its answer is complete. */
  signal: AbortSignal;
  /** Set by `authenticate`. */
  principal: Principal | undefined;
  /** Set by `authenticateMaster`. */
  actor: Actor | undefined;
  /** Set by `jsonBody`: parsed, of bounded size and depth, not yet validated. */
  body: unknown;
  /** Takes room for a provider's answer, as part of `bufferedBytes`. Set by `overload`. */
  room: Room;
  /** Bytes of body held in memory, given back when the answer is done. */
  bufferedBytes: number;
  /** For the access log. */
  callId: string | undefined;
  decisionId: string | undefined;
  errorCode: string | undefined;
}

export type AppContext = Context & { state: RequestState };
export type AppMiddleware = Middleware<RequestState>;
