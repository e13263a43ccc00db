import type { Actor } from '../../admin/actor.ts';
import { unauthorized } from '../../domain/errors.ts';
import { hashSecret, isWellFormedSecret, type Pepper } from '../../domain/secret.ts';
import type { Database } from '../../store/database.ts';
import { findMasterKeyByHash } from '../../store/master-keys.ts';
import type { Store } from '../../store/store.ts';
import { bearerToken } from '../credential.ts';
import type { AppContext, AppMiddleware } from '../state.ts';

export interface MasterAuthentication {
  store: Pick<Store, 'read'>;
  /** Accepted peppers, the current one first. */
  peppers: readonly Pepper[];
}

const actors = new WeakMap<AppContext, Actor>();

/** The actor that `authenticateMaster` found. */
export function actorOf(ctx: AppContext): Actor {
  const actor = actors.get(ctx);
  if (actor === undefined) throw new Error('the route lacks its authenticate step');
  return actor;
}

/** The bearer master key becomes an actor with its maker's current role; anything else is 401 `invalid_api_key`. */
export function authenticateMaster({ store, peppers }: MasterAuthentication): AppMiddleware {
  return async (ctx, next) => {
    const token = bearerToken(ctx.req);
    if (token === undefined) {
      throw unauthorized('invalid_api_key', 'No master key was given: send `Authorization: Bearer <master key>`.');
    }
    const found = isWellFormedSecret(token, 'master')
      ? await store.read((db) => findByToken(db, token, peppers))
      : undefined;
    if (found === undefined) throw unauthorized('invalid_api_key', 'The master key is not valid.');
    actors.set(ctx, found);
    return next();
  };
}

function findByToken(db: Database, token: string, peppers: readonly Pepper[]): Actor | undefined {
  for (const pepper of peppers) {
    const credential = findMasterKeyByHash(db, hashSecret(token, pepper));
    if (credential !== undefined) return { kind: 'master_key', ...credential };
  }
  return undefined;
}
