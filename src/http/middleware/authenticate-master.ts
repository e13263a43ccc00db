import type { Actor } from '../../admin/audit/actor.ts';
import { unauthorized } from '../../domain/errors.ts';
import { hashSecret, isWellFormedSecret, kindOfSecret, type Pepper } from '../../domain/secret.ts';
import type { Clock } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import { rehash } from '../../store/secrets/rehash.ts';
import type { Store } from '../../store/store.ts';
import { type FoundMasterKey, findMasterKeyByHash, touchMasterKey } from '../../store/tenants/master-keys.ts';
import { apiKeyToken } from '../request/credential.ts';
import { type AppContext, type AppMiddleware, placeOf } from '../state.ts';
import { type LimitRateDeps, limitRate } from './rate-limit.ts';

export interface MasterAuthentication extends LimitRateDeps {
  store: Pick<Store, 'read' | 'write'>;
  clock: Clock;
  /** Accepted peppers, the current one first. */
  peppers: readonly [Pepper, ...Pepper[]];
}

/** The use of a key is noted at most so often, in milliseconds: a busy program must not turn every read into a write. */
const NOTED_EVERY = 60_000;

/** The actor that `authenticateMaster` found. */
export function actorOf(ctx: AppContext): Actor {
  if (ctx.state.actor === undefined) throw new Error('the route lacks its authenticate step');
  return ctx.state.actor;
}

const NO_KEY = 'No master key was given: send `Authorization: Bearer <master key>`.';

/** The refusal of a token. The prefix shows a gateway key, so nothing is looked up. */
const refusalOf = (token: string): string =>
  kindOfSecret(token) === 'gateway'
    ? 'This is a gateway key: it is for calls. The master API needs a master key, which begins with `pclm_`.'
    : 'The master key is not valid.';

/**
 * The master key, as bearer token or `x-api-key`, becomes an actor with its maker's current role; anything else is 401 `invalid_api_key`. A request counts
 * against the rate of its master key, without a valid one against that of its address: guessing takes nothing from administrators.
 */
export function authenticateMaster(deps: MasterAuthentication): AppMiddleware {
  const { store, clock, peppers } = deps;
  const limit = limitRate(deps, 'management');
  return async (ctx, next) => {
    const token = apiKeyToken(ctx.req);
    const found =
      token !== undefined && isWellFormedSecret(token, 'master')
        ? await store.read((db) => findByToken(db, token, peppers))
        : undefined;
    if (token === undefined || found === undefined) {
      limit(ctx, ctx.state.network, 'address');
      throw unauthorized('invalid_api_key', token === undefined ? NO_KEY : refusalOf(token));
    }
    const { lastUsedAt, outdatedHash, ...credential } = found;
    ctx.state.actor = { kind: 'master_key', ...credential };
    placeOf(ctx).countForKey(credential.organizationId, credential.masterKeyId);
    limit(ctx, credential.masterKeyId, 'master_key');
    if (outdatedHash !== undefined) {
      const { organizationId, masterKeyId: id } = credential;
      const outdated = { table: 'master_keys', organizationId, id, secretHash: outdatedHash } as const;
      await store.write((db) => rehash(db, outdated, token, peppers[0]));
    }
    if (lastUsedAt === null || clock.now() - lastUsedAt >= NOTED_EVERY) {
      await store.write((db, now) => touchMasterKey(db, credential.organizationId, credential.masterKeyId, now));
    }
    return next();
  };
}

/** For those who have no master key: the request counts against the rate of its address. @throws ApiError 429 */
export function limitAddress(deps: LimitRateDeps): AppMiddleware {
  const limit = limitRate(deps, 'management');
  return async (ctx, next) => {
    limit(ctx, ctx.state.network, 'address');
    return next();
  };
}

/** A hash under an older pepper is to be renewed. */
type FoundByToken = FoundMasterKey & { readonly outdatedHash: string | undefined };

function findByToken(db: Database, token: string, peppers: readonly Pepper[]): FoundByToken | undefined {
  for (const pepper of peppers) {
    const secretHash = hashSecret(token, pepper);
    const found = findMasterKeyByHash(db, secretHash);
    if (found !== undefined) return { ...found, outdatedHash: pepper === peppers[0] ? undefined : secretHash };
  }
  return undefined;
}
