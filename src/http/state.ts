import type { Context, Middleware } from 'koa';
import type { Actor } from '../admin/audit/actor.ts';
import type { Principal } from '../core/access/principal.ts';
import type { ApiError } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import type { Place } from './load.ts';
import type { Session } from './pages/session.ts';

/** How a route answers an error where that is not the error envelope. */
export interface FaultForm {
  readonly type: string;
  text(error: ApiError): string;
  headers(error: ApiError): Record<string, string>;
}

/** No query, which is what most requests have. */
const NO_QUERY = new URLSearchParams();

/**
 * What the steps of the pipeline learn about one request, each step's field named after it. A class, so that every request's has
 * one shape, which is what makes reading it cheap.
 */
export class RequestState {
  /** Ours: on every answer as `x-request-id`, in the log, in metadata. */
  readonly requestId: string;
  /** By `performance.now()`. */
  readonly arrivedAt = performance.now();
  /** Parsed, of bounded length and number of parameters. */
  query = NO_QUERY;
  /** The caller's own `x-request-id`, if it is well formed. */
  clientRequestId: string | undefined = undefined;
  /** Canonical client address, or null when it cannot be determined. */
  clientIp: string | null = null;
  /** Who is counted as one caller while no key is known: an address, or a network of them. */
  network = '';
  /** What the request holds of the listener's load; undefined for those that are always answered. */
  place: Place | undefined = undefined;
  /** Aborted when the client leaves: before its answer is complete, or with the connection at the end of it. */
  readonly signal: AbortSignal;
  /** Set by `authenticate`. */
  principal: Principal | undefined = undefined;
  /** Set by `authenticateMaster`. */
  actor: Actor | undefined = undefined;
  /** Set by `currentSession` of the pages: null when nobody is signed in. */
  session: Session | null | undefined = undefined;
  /** Set by `jsonBody`: parsed, of bounded size and depth, not yet validated. */
  body: unknown = undefined;
  /** Milliseconds for which the body was waited for. */
  receivingMs = 0;
  /** Bytes of the body as it came. */
  bodyBytes = 0;
  /** Undefined: the error envelope. */
  faultForm: FaultForm | undefined = undefined;
  /** For the access log. */
  tool: string | undefined = undefined;
  callId: string | undefined = undefined;
  decisionId: string | undefined = undefined;
  errorCode: string | undefined = undefined;
  /** With which the request was answered. */
  fault: ApiError | undefined = undefined;
  /** Of a denial. */
  reason: string | undefined = undefined;
  /** Of a call that has ended: who served it, and its cost in pico-dollars. */
  target: Pick<Mapping, 'providerId' | 'modelId'> | undefined = undefined;
  cost: bigint | undefined = undefined;

  constructor(requestId: string, signal: AbortSignal) {
    this.requestId = requestId;
    this.signal = signal;
  }
}

export type AppContext = Context & { state: RequestState };
export type AppMiddleware = Middleware<RequestState>;

/** The place that `overload` gave. */
export function placeOf({ state }: AppContext): Place {
  if (state.place === undefined) throw new Error('the route is always answered, and holds nothing');
  return state.place;
}
