import type { Context, Middleware } from 'koa';
import type { Actor } from '../admin/audit/actor.ts';
import type { Principal } from '../core/access/principal.ts';
import type { ApiError } from '../domain/errors.ts';
import type { Place } from './load.ts';
import type { Session } from './pages/session.ts';

/** How a route answers an error where that is not the error envelope. */
export interface FaultForm {
  readonly type: string;
  text(error: ApiError): string;
  headers(error: ApiError): Record<string, string>;
}

/** What the steps of the pipeline learn about one request, each step's field named after it. */
export interface RequestState {
  /** Ours: on every answer as `x-request-id`, in the log, in metadata. */
  requestId: string;
  /** Parsed, of bounded length and number of parameters. */
  query: URLSearchParams;
  /** The caller's own `x-request-id`, if it is well formed. */
  clientRequestId: string | undefined;
  /** Canonical client address, or null when it cannot be determined. */
  clientIp: string | null;
  /** Who is counted as one caller while no key is known: an address, or a network of them. */
  network: string;
  /** What the request holds of the listener's load; undefined for those that are always answered. */
  place: Place | undefined;
  /** Aborted when the client leaves before its answer is complete. */
  signal: AbortSignal;
  /** Set by `authenticate`. */
  principal: Principal | undefined;
  /** Set by `authenticateMaster`. */
  actor: Actor | undefined;
  /** Set by `currentSession` of the pages: null when nobody is signed in. */
  session: Session | null | undefined;
  /** Set by `jsonBody`: parsed, of bounded size and depth, not yet validated. */
  body: unknown;
  /** Bytes of the body as it came. */
  bodyBytes: number;
  /** Undefined: the error envelope. */
  faultForm: FaultForm | undefined;
  /** For the access log. */
  tool: string | undefined;
  callId: string | undefined;
  decisionId: string | undefined;
  errorCode: string | undefined;
}

export type AppContext = Context & { state: RequestState };
export type AppMiddleware = Middleware<RequestState>;

/** The place that `overload` gave. */
export function placeOf({ state }: AppContext): Place {
  if (state.place === undefined) throw new Error('the route is always answered, and holds nothing');
  return state.place;
}
