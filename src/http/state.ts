import type { Context, Middleware } from 'koa';
import type { Actor } from '../admin/audit/audit-trail.ts';
import type { Principal } from '../core/authorize.ts';
import { type ApiError, overloaded } from '../domain/errors.ts';
import type { Mapping } from '../domain/model.ts';
import { noRoom } from '../net/transport-error.ts';
import type { MemberRecord } from '../store/tenants/member-records.ts';

/** Form of a route's errors where that is not the error envelope. */
export interface FaultForm {
  readonly type: string;
  text(error: ApiError): string;
  headers(error: ApiError): Record<string, string>;
}

/** No query, which is what most requests have. */
const NO_QUERY = new URLSearchParams();

/**
 * Facts that the steps of the pipeline learn about one request, each step's field named after it. A class, so that every
 * request's has one shape, which makes reading it cheap.
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
  /** Network counted as one caller while no key is known: an address, or a network of them. */
  network = '';
  /** Share of the listener's load that the request holds; undefined for those that are always answered. */
  place: LoadPlace | undefined = undefined;
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
  /** Reason of a denial. */
  reason: string | undefined = undefined;
  /** Target of a call that has ended, which served it, and its cost in pico-dollars. */
  target: Pick<Mapping, 'providerId' | 'modelId'> | undefined = undefined;
  cost: bigint | undefined = undefined;

  constructor(requestId: string, signal: AbortSignal) {
    this.requestId = requestId;
    this.signal = signal;
  }
}

export type RequestContext = Context & { state: RequestState };
export type AppMiddleware = Middleware<RequestState>;

/** The place that `overload` gave. */
export function loadPlaceOf({ state }: RequestContext): LoadPlace {
  if (state.place === undefined) throw new Error('the route is always answered, and holds nothing');
  return state.place;
}

/** Session of a signed-in member. */
export interface Session {
  readonly id: string;
  /** With their current role. */
  readonly member: MemberRecord;
  readonly organizationName: string;
  /** For `x-csrf-token`, and the field `csrf` of forms (`csrfField`). */
  readonly csrfToken: string;
}

interface LoadLimits {
  /** Requests being served at once. */
  readonly maxInFlight: number;
  /** Bytes of memory that request bodies take at once, parsed form and copies included. */
  readonly maxBufferedBytes: number;
}

/** The most of either limit that one caller may have: an address while no key is known, then the key and its organization. */
const PARTS = { address: 1 / 10, key: 3 / 5, organization: 4 / 5 } as const;

type Kind = keyof typeof PARTS;

/** Share of one caller. */
class Share {
  readonly #home: Map<string, Share>;
  readonly #name: string;
  readonly #maxPlaces: number;
  readonly #maxBytes: number;
  #places = 0;
  #bytes = 0;

  constructor(home: Map<string, Share>, name: string, part: number, limits: LoadLimits) {
    this.#home = home;
    this.#name = name;
    this.#maxPlaces = Math.ceil(limits.maxInFlight * part);
    this.#maxBytes = Math.ceil(limits.maxBufferedBytes * part);
  }

  hasRoom(places: number, bytes: number): boolean {
    return this.#places + places <= this.#maxPlaces && this.#bytes + bytes <= this.#maxBytes;
  }

  /** Negative numbers give back; a share that holds nothing is forgotten. */
  add(places: number, bytes: number): void {
    if (this.#places === 0) this.#home.set(this.#name, this);
    this.#places += places;
    this.#bytes += bytes;
    if (this.#places === 0) this.#home.delete(this.#name);
  }
}

/** Place of one request in a listener's load, from its arrival until nothing of it is left. */
export class LoadPlace {
  readonly #load: Load;
  /** None as long as it is not known whose the request is. */
  #shares: readonly Share[] = [];
  #bytes = 0;
  /** Bytes of the answer, among these. */
  #answerBytes = 0;
  #isHeld = true;
  #isServed = false;
  #isClosed = false;

  constructor(load: Load) {
    this.#load = load;
    load.count(1, 0);
  }

  /** The request counts for the address it comes from. @throws ApiError 503 `overloaded`, and then nothing is held any more */
  countForAddress(address: string): void {
    if (!this.#isHeld) return;
    try {
      this.#countFor([this.#load.share('address', address)]);
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  /** The request counts for an organization and its key. @throws ApiError 503 `overloaded` */
  countForKey(organizationId: string, keyId: string): void {
    this.#countFor([this.#load.share('organization', organizationId), this.#load.share('key', keyId)]);
  }

  /** The request holds so many bytes of memory in all from now on. @throws ApiError 503 `overloaded`, nothing changed */
  hold(bytes: number): void {
    const more = bytes - this.#bytes;
    if (more === 0) return;
    if (more > 0 && !this.#hasRoom(more)) throw overloaded();
    this.#change(0, more);
  }

  /** The answer of a provider takes so many bytes next to that; less than it took before changes nothing. @throws ApiError 503 */
  holdAnswer(bytes: number): void {
    const more = bytes - this.#answerBytes;
    if (more <= 0) return;
    if (!this.#hasRoom(more)) throw noRoom();
    this.#answerBytes = bytes;
    this.#change(0, more);
  }

  /** So many bytes for a while, next to what the request holds. @returns gives them back @throws ApiError 503 `overloaded` */
  borrow(bytes: number): () => void {
    if (!this.#hasRoom(bytes)) throw overloaded();
    this.#change(0, bytes);
    return () => {
      if (this.#isHeld) this.#change(0, -bytes);
    };
  }

  #hasRoom(bytes: number): boolean {
    return this.#load.hasRoom(bytes) && this.#shares.every((share) => share.hasRoom(0, bytes));
  }

  /**
   * The code that serves the request is done. A request that counts for nobody yet counts for its address from now on.
   * @throws ApiError 503 `overloaded`, and then nothing is held any more
   */
  served(address: string): void {
    if (this.#isServed) return;
    this.#isServed = true;
    if (this.#shares.length === 0) this.countForAddress(address);
    if (this.#isClosed) this.#end();
  }

  /** The answer is done, or the client has left. The code that serves the request may still hold its body. */
  closed(): void {
    this.#isClosed = true;
    if (this.#isServed) this.#end();
  }

  #countFor(shares: readonly Share[]): void {
    if (!shares.every((share) => share.hasRoom(1, this.#bytes))) throw overloaded();
    for (const share of shares) share.add(1, this.#bytes);
    this.#shares = shares;
  }

  #end(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#change(-1, -this.#bytes);
  }

  #change(places: number, bytes: number): void {
    this.#bytes += bytes;
    this.#load.count(places, bytes);
    for (const share of this.#shares) share.add(places, bytes);
  }
}

/** Load that the requests of one listener hold at the moment, in all and by caller, so that none of them can take everything. */
export class Load {
  readonly #limits: LoadLimits;
  readonly #shares: Readonly<Record<Kind, Map<string, Share>>> = {
    address: new Map(),
    key: new Map(),
    organization: new Map(),
  };
  #inFlight = 0;
  #bufferedBytes = 0;

  constructor(limits: LoadLimits) {
    this.#limits = limits;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  isFull(): boolean {
    return this.#inFlight >= this.#limits.maxInFlight;
  }

  /** A place for a request, which must soon be counted for someone. @throws ApiError 503 `overloaded` */
  enter(): LoadPlace {
    if (this.isFull()) throw overloaded();
    return new LoadPlace(this);
  }

  hasRoom(bytes: number): boolean {
    return this.#bufferedBytes + bytes <= this.#limits.maxBufferedBytes;
  }

  share(kind: Kind, name: string): Share {
    const home = this.#shares[kind];
    return home.get(name) ?? new Share(home, name, PARTS[kind], this.#limits);
  }

  count(places: number, bytes: number): void {
    this.#inFlight += places;
    this.#bufferedBytes += bytes;
  }
}
