import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ApiError, unauthorized } from '../../domain/errors.ts';
import { hashOAuthSecret } from '../../domain/oauth-token.ts';
import { hashSecret, isWellFormedSecret, kindOfSecret, type Pepper } from '../../domain/secret.ts';
import { isLimited } from '../../domain/spend-limits.ts';
import type { Clock } from '../../domain/time.ts';
import { rehash } from '../../store/secrets/rehash.ts';
import { findOAuthAccess } from '../../store/sign-in/oauth.ts';
import type { Store } from '../../store/store.ts';
import { invalidKey, type KeyCredential, usable } from '../../store/tenants/key-credential.ts';
import { type Principal, subjectsOf } from './principal.ts';

export interface AuthenticateDeps {
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
export interface RefusedKey {
  /** Whose it is; undefined: no key that is known was named. */
  readonly whose: Pick<KeyCredential, 'organizationId' | 'projectId' | 'keyId' | 'memberId'> | undefined;
  readonly detail: string | undefined;
}

const refusedKeys = new WeakMap<object, RefusedKey>();

/** What `Authenticate` knows of a key that it refused with this error. */
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
