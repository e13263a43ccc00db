import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ApiError, unauthorized } from '../domain/errors.ts';
import { hashSecret, isWellFormedSecret, kindOfSecret, type Pepper } from '../domain/id.ts';
import { hashOAuthSecret } from '../domain/identity.ts';
import { allRateLimits, isLimited, type LimitedEndpoint, type RateLimits, type RateScope } from '../domain/limits.ts';
import type { Clock } from '../domain/time.ts';
import { rehash } from '../store/secrets/rotate-secrets.ts';
import { findOAuthAccess } from '../store/sign-in/oauth.ts';
import type { Store } from '../store/store.ts';
import { invalidKey, type KeyCredential, usable } from '../store/tenants/key-credential.ts';
import { type Principal, subjectsOf } from './authorize.ts';

interface AuthenticateDeps {
  store: Store;
  clock: Clock;
  /** Accepted peppers, the current one first. */
  peppers: readonly [Pepper, ...Pepper[]];
}

/** The refusal of a secret that was sent to the wrong door. Its prefix shows the kind, so nothing is looked up. */
function ofAnotherKind(token: string): ApiError | undefined {
  switch (kindOfSecret(token)) {
    case 'master':
      return unauthorized(
        'invalid_api_key',
        'This is a master key: it is for the master API. Calls need a gateway key, which begins with `pcl_`.',
      );
    case 'platform':
      return unauthorized('invalid_api_key', 'This is a platform key, which makes no calls. Send a gateway key.');
    default:
      return undefined;
  }
}

/** A bearer token becomes a principal. Throws the 401 of src/admin/README.md, "refusals", otherwise. */
export type Authenticate = (token: string | undefined) => Promise<Principal>;

/** More about a refusal than its caller learns: for those who run the gateway. */
interface RefusedKey {
  /** The key and its owner; undefined: no known key was named. */
  readonly whose: Pick<KeyCredential, 'organizationId' | 'projectId' | 'keyId' | 'memberId'> | undefined;
  readonly detail: string | undefined;
}

const refusedKeys = new WeakMap<object, RefusedKey>();

/** The key that `Authenticate` refused with this error. */
export const refusedKeyOf = (error: object): RefusedKey | undefined => refusedKeys.get(error);

function refusing(error: ApiError, detail: string | undefined, whose?: KeyCredential): ApiError {
  refusedKeys.set(error, { whose, detail });
  return error;
}

const DETAIL = {
  form: 'What was sent is no gateway key: it is mistyped, cut off, or meant for another door.',
  unknown:
    'No key has this secret: it may be the old secret of a rolled key, or of another installation, or its project is gone.',
  platform: 'It is a platform key, which makes no calls.',
  old: 'The key was rolled, and the time in which its old secret still worked is over.',
  deleted: 'The key was deleted.',
} as const;

/** Most keys whose stored hash is remembered. */
const MAX_KEYS = 10_000;

/** An HMAC takes several times as long as a plain hash, and the plain hash of a secret of 238 random bits tells nobody the secret. */
function rememberedHashes(pepper: Pepper): (token: string) => string {
  const known = new LRUCache<string, string>({ max: MAX_KEYS });
  return (token) => {
    const plain = hash('sha256', token, 'base64url');
    const remembered = known.get(plain);
    if (remembered !== undefined) return remembered;
    const stored = hashSecret(token, pepper);
    known.set(plain, stored);
    return stored;
  };
}

/** Mistyped keys are recognized by their checksum, without a look-up; the status is read on every request. */
export function createAuthenticate({ store, clock, peppers }: AuthenticateDeps): Authenticate {
  // By pepper: a reload changes which there are.
  const hashers = new WeakMap<Pepper, (token: string) => string>();
  const hasherOf = (pepper: Pepper): ((token: string) => string) => {
    const known = hashers.get(pepper);
    if (known !== undefined) return known;
    const made = rememberedHashes(pepper);
    hashers.set(pepper, made);
    return made;
  };
  const find = async (token: string) => {
    // A reload, or another call that renews the hash, may move the key under a pepper that was tried already: then once more.
    let tried = peppers.length === 1 ? peppers[0] : undefined;
    for (;;) {
      for (const pepper of peppers) {
        const secretHash = hasherOf(pepper)(token);
        const found = await store.findKeyByHash(secretHash);
        if (found === undefined) continue;
        // A secret that is about to end keeps its pepper.
        if (pepper !== peppers[0] && found.secretEndsAt === null) renew(found, token, secretHash);
        return found;
      }
      if (tried === peppers[0]) return undefined;
      tried = peppers[0];
    }
  };
  /** Behind the caller's back; where it fails, the next call tries again. */
  const renew = ({ organizationId, keyId: id }: KeyCredential, token: string, secretHash: string): void =>
    void store
      .write((db) => rehash(db, { table: 'keys', organizationId, id, secretHash }, token, peppers[0]))
      .catch(() => {});

  return async (token) => {
    if (token === undefined)
      throw unauthorized('invalid_api_key', 'No API key was given: send `Authorization: Bearer <key>`.');
    if (!isWellFormedSecret(token, 'gateway')) throw refusing(ofAnotherKind(token) ?? invalidKey(), DETAIL.form);
    const found = await find(token);
    if (found === undefined) throw refusing(invalidKey(), DETAIL.unknown);
    if (found.kind === 'platform_secret') throw refusing(invalidKey(), DETAIL.platform, found);
    const now = clock.now();
    if (found.secretEndsAt !== null && found.secretEndsAt <= now) throw refusing(invalidKey(), DETAIL.old, found);
    return toPrincipal(found, now);
  };
}

/** @throws ApiError 401 for a key that may not be used */
function toPrincipal(found: KeyCredential, now: number): Principal {
  const key = usable(found, now);
  if (key instanceof ApiError) {
    throw refusing(key, found.deletedAt === null ? undefined : DETAIL.deleted, found);
  }
  return {
    keyId: key.keyId,
    organizationId: key.organizationId,
    projectId: key.projectId,
    memberId: key.memberId,
    subjects: subjectsOf(key),
    keyTags: key.tags,
    ruleRevision: key.ruleRevision,
    capped: isLimited(key),
    rates: key.rates,
    cacheSeconds: key.cachingEnabled ? key.cacheDurationSeconds : undefined,
  };
}

/** An access token of OAuth becomes the principal of the key that it was granted. @param resource what it must be for */
export type AuthenticateToken = (token: string, resource: string) => Promise<Principal>;

const invalidToken = (): ApiError =>
  unauthorized(
    'invalid_token',
    'The access token is not valid: it has expired, its grant has ended, or it is for another address.',
  );

/** Token, grant and key are read on every request: what ends one of them ends the access. */
export function createAuthenticateToken({
  store,
  clock,
}: Pick<AuthenticateDeps, 'store' | 'clock'>): AuthenticateToken {
  return async (token, resource) => {
    const now = clock.now();
    const access = await store.read((db) => findOAuthAccess(db, hashOAuthSecret(token), now));
    if (access === undefined || access.audience !== resource) throw invalidToken();
    const key = await store.findKeyById(access.keyId);
    if (key === undefined) throw invalidToken();
    return toPrincipal(key, now);
  };
}

/** Length of a window, in milliseconds. */
const WINDOW_MS = 60_000;

/** Most windows and shares in them that a meter remembers; beyond, the window that began first is forgotten. */
const MAX_REMEMBERED = 50_000;

/** A caller's position at one limit. */
export interface Rate {
  readonly unit: 'requests' | 'tokens';
  /** Owner of the limit. */
  readonly scope: RateScope;
  /** Requests or tokens a minute. */
  readonly limit: number;
  /** The amount left to the caller in this window; never negative. */
  readonly remaining: number;
  /** Milliseconds until the window ends; the next request after that begins another one. */
  readonly resetMs: number;
  /** The part of the limit that is the key's own, whatever others take; undefined: it has the limit to itself. */
  readonly share: number | undefined;
}

/** A caller's position after one more request: for each unit, at the nearest limit. */
export interface Standing {
  readonly requests: Rate | undefined;
  readonly tokens: Rate | undefined;
  /** The limit that refuses the request, which then counts against none; of several the one that lasts longest. */
  readonly refused: Rate | undefined;
}

/** The caller that a key identifies. */
type Caller = Pick<Principal, 'organizationId' | 'memberId' | 'keyId' | 'rates'>;

/** The caller where a limit is shared fairly: by member, then by key. */
type Holder = Pick<Caller, 'memberId' | 'keyId'>;

/** By member, what each of their keys has taken. */
type Shares = Map<string, Map<string, number>>;

interface Window {
  readonly endsAt: number;
  /** The amount taken, and the amount let through beyond the limit in the window before. */
  used: number;
  /** The amount let through beyond the limit, by shares. */
  beyond: number;
  readonly shares: Shares;
  /** Shares of the window before, if it has just ended. */
  readonly before: Shares | undefined;
  /** Keys in `shares` and in `before`. */
  keys: number;
  readonly keysBefore: number;
}

/** Room that a limit leaves to one caller at one moment. */
interface Look {
  readonly meter: Meter;
  readonly window: Window;
  readonly holder: Holder | undefined;
  readonly scope: RateScope;
  readonly limit: number;
  readonly left: number;
  readonly share: number | undefined;
  readonly resetMs: number;
}

/** A key's own part of a limit: the limit divided by the members who asked in this window or the one before, then by the member's keys. */
function shareOf({ shares, before }: Window, limit: number, { memberId, keyId }: Holder): number {
  const own = shares.get(memberId);
  const members = Math.max(shares.size + (own === undefined ? 1 : 0), before?.size ?? 0);
  const keysNow = own === undefined ? 1 : own.size + (own.has(keyId) ? 0 : 1);
  const keys = Math.max(keysNow, before?.get(memberId)?.size ?? 0);
  return Math.floor(Math.max(1, limit / members) / keys);
}

/**
 * Windows of a minute, each begun by the first request. In memory: a start forgets them.
 *
 * A limit with holders is shared fairly. While there is room, everyone takes of it, so that one key alone has all of it. When it is
 * used up, a key that has had less than its share is let through still: nobody is refused because of what others took. What was let
 * through beyond the limit counts in the next window, so that over several minutes no more passes than the limit allows.
 */
class Meter {
  readonly #maxRemembered: number;
  /** In the order in which they began. */
  readonly #windows = new Map<string, Window>();
  #remembered = 0;

  constructor(maxRemembered: number) {
    this.#maxRemembered = maxRemembered;
  }

  /** @param holder undefined: the limit is not shared fairly */
  look(name: string, scope: RateScope, limit: number, holder: Holder | undefined, now: number): Look {
    const present = this.#windows.get(name);
    const window = present === undefined || present.endsAt <= now ? this.#begin(name, present, now, limit) : present;
    const resetMs = window.endsAt - now;
    const room = limit - window.used;
    if (holder === undefined)
      return { meter: this, window, holder, scope, limit, left: room, share: undefined, resetMs };
    const own = window.shares.get(holder.memberId)?.get(holder.keyId);
    // A key that cannot be remembered takes of what there is room for.
    const counted = own === undefined && !this.#makeRoom(window) ? undefined : holder;
    const share = counted === undefined ? 0 : shareOf(window, limit, holder);
    const left = Math.max(room, share - (own ?? 0));
    return { meter: this, window, holder: counted, scope, limit, left, share, resetMs };
  }

  /** Counts what is let through. */
  take(look: Look, amount: number): void {
    if (look.window.used >= look.limit) look.window.beyond += amount;
    this.add(look, amount);
  }

  /** Counts what has happened, whether the limit allows it or not. */
  add({ window, holder }: Look, amount: number): void {
    window.used += amount;
    if (holder === undefined) return;
    const { memberId, keyId } = holder;
    let keys = window.shares.get(memberId);
    if (keys === undefined) {
      keys = new Map();
      window.shares.set(memberId, keys);
    }
    const taken = keys.get(keyId);
    keys.set(keyId, (taken ?? 0) + amount);
    if (taken !== undefined) return;
    window.keys += 1;
    this.#remembered += 1;
  }

  #begin(name: string, last: Window | undefined, now: number, limit: number): Window {
    if (last !== undefined) this.#forget(name, last);
    this.#makeRoom(undefined);
    const isNext = last !== undefined && last.endsAt > now - WINDOW_MS;
    const window: Window = {
      endsAt: now + WINDOW_MS,
      used: isNext ? Math.min(limit, last.beyond) : 0,
      beyond: 0,
      shares: new Map(),
      before: isNext ? last.shares : undefined,
      keys: 0,
      keysBefore: isNext ? last.keys : 0,
    };
    this.#windows.set(name, window);
    this.#remembered += 1 + window.keysBefore;
    return window;
  }

  /** @param kept is not forgotten. @returns false: there is no room without forgetting it */
  #makeRoom(kept: Window | undefined): boolean {
    if (this.#remembered < this.#maxRemembered) return true;
    for (const [name, window] of this.#windows) {
      if (window === kept) return false;
      this.#forget(name, window);
      if (this.#remembered < this.#maxRemembered) return true;
    }
    return true;
  }

  #forget(name: string, window: Window): void {
    this.#windows.delete(name);
    this.#remembered -= 1 + window.keys + window.keysBefore;
  }
}

const rateOf = (unit: Rate['unit'], { scope, limit, left, share, resetMs }: Look, taken: number): Rate => ({
  unit,
  scope,
  limit,
  remaining: Math.max(0, left - taken),
  resetMs,
  share,
});

const nearest = (rates: readonly Rate[]): Rate | undefined =>
  rates.reduce<Rate | undefined>(
    (least, rate) => (least !== undefined && least.remaining <= rate.remaining ? least : rate),
    undefined,
  );

/** One request against one limit. */
function takeOne(look: Look): Standing {
  const passes = look.left > 0;
  if (passes) look.meter.take(look, 1);
  const requests = rateOf('requests', look, passes ? 1 : 0);
  return { requests, tokens: undefined, refused: passes ? undefined : requests };
}

/** One request against several limits: it counts against all of them or none. */
function takeAll(requests: readonly Look[], tokens: readonly Look[]): Standing {
  const refusing = [
    ...requests.filter(({ left }) => left <= 0).map((look) => rateOf('requests', look, 0)),
    ...tokens.filter(({ left }) => left <= 0).map((look) => rateOf('tokens', look, 0)),
  ];
  const taken = refusing.length === 0 ? 1 : 0;
  if (taken === 1) {
    for (const look of requests) look.meter.take(look, 1);
    for (const look of tokens) look.meter.take(look, 0);
  }
  return {
    requests: nearest(requests.map((look) => rateOf('requests', look, taken))),
    tokens: nearest(tokens.map((look) => rateOf('tokens', look, 0))),
    refused: refusing.reduce<Rate | undefined>(
      (last, rate) => (last !== undefined && last.resetMs >= rate.resetMs ? last : rate),
      undefined,
    ),
  };
}

/** Endpoints whose requests are calls, which the limits of keys, members, projects and organizations count. */
const CALLS: ReadonlySet<LimitedEndpoint> = new Set(['chat', 'images', 'moderations']);

/** The limits of requests and tokens a minute (src/http/README.md, "Rates and load"). */
export class Rates {
  readonly #limits: ReturnType<typeof allRateLimits>;
  readonly #now: () => number;
  readonly #endpoints: Readonly<Record<LimitedEndpoint, Meter>>;
  readonly #requests: Meter;
  readonly #tokens: Meter;

  /** @param now whole milliseconds that never go back, even when the system's clock is set */
  constructor(limits: RateLimits, now = () => Math.floor(performance.now()), maxRemembered = MAX_REMEMBERED) {
    const meter = (): Meter => new Meter(maxRemembered);
    this.#limits = allRateLimits(limits);
    this.#now = now;
    this.#requests = meter();
    this.#tokens = meter();
    this.#endpoints = {
      chat: meter(),
      images: meter(),
      models: meter(),
      moderations: meter(),
      mcp: meter(),
      management: meter(),
      sign_in: meter(),
      oauth: meter(),
    };
  }

  /** Counts one request of an address or a master key; undefined where nothing is limited. */
  take(endpoint: LimitedEndpoint, caller: string, scope: 'address' | 'master_key'): Standing | undefined {
    const limit = this.#limits[endpoint];
    if (limit === undefined) return undefined;
    return takeOne(this.#endpoints[endpoint].look(caller, scope, limit, undefined, this.#now()));
  }

  /**
   * Counts one request of a key against its organization's limit of the endpoint and, where the request is a call, against each limit
   * that binds the key; undefined where nothing is limited.
   */
  takeOf(endpoint: LimitedEndpoint, caller: Caller): Standing | undefined {
    const { organizationId, rates } = caller;
    const limit = this.#limits[endpoint];
    const isBound = rates.length > 0 && CALLS.has(endpoint);
    if (limit === undefined && !isBound) return undefined;
    const now = this.#now();
    const look =
      limit === undefined
        ? undefined
        : this.#endpoints[endpoint].look(organizationId, 'organization', limit, caller, now);
    if (!isBound && look !== undefined) return takeOne(look);
    return takeAll(
      [...(look === undefined ? [] : [look]), ...this.#looks('requests', caller, now)],
      this.#looks('tokens', caller, now),
    );
  }

  /** Counts the tokens of a call that has ended. */
  spend(caller: Caller, tokens: number): void {
    if (caller.rates.length === 0 || tokens === 0) return;
    for (const look of this.#looks('tokens', caller, this.#now())) look.meter.add(look, tokens);
  }

  #looks(unit: Rate['unit'], caller: Caller, now: number): Look[] {
    const meter = unit === 'requests' ? this.#requests : this.#tokens;
    return caller.rates.flatMap(({ scope, subjectId, [unit]: limit }) =>
      limit === null ? [] : [meter.look(subjectId, scope, limit, scope === 'organization' ? caller : undefined, now)],
    );
  }
}

const WORDS: Readonly<Record<RateScope, { readonly holder: string; readonly its: string }>> = {
  address: { holder: 'Your address', its: 'its' },
  master_key: { holder: 'Your master key', its: 'its' },
  key: { holder: 'This API key', its: 'its' },
  member: { holder: 'The owner of this API key', its: 'their' },
  project: { holder: 'The project of this API key', its: 'its' },
  organization: { holder: 'Your organization', its: 'its' },
};

/** The answer to a request that a limit refuses: 429 `rate_limit_exceeded`, with whose limit it is and when to come back. */
export function rateLimitExceeded({ unit, scope, limit, share, resetMs }: Rate): ApiError {
  const seconds = Math.max(1, Math.ceil(resetMs / 1000));
  const { holder, its } = WORDS[scope];
  const used = unit === 'requests' ? 'made' : 'used';
  const ownPart = share !== undefined && share > 0 && share < limit ? `, and this API key its share of ${share}` : '';
  return new ApiError(
    429,
    'rate_limit_exceeded',
    `${holder} has ${used} ${its} ${limit} ${unit} of this minute${ownPart}. Try again in ${seconds} s.`,
    { headers: { 'retry-after': String(seconds) } },
  );
}
