import { refusal } from '../domain/api-key.ts';
import { unauthorized } from '../domain/errors.ts';
import { hashSecret, isWellFormedSecret, type Pepper } from '../domain/secret.ts';
import { budgetRefusal, isCapped } from '../domain/spend-limits.ts';
import type { Clock } from '../domain/time.ts';
import type { KeyCredential } from '../store/key-credential.ts';
import { rehash } from '../store/rehash.ts';
import type { Store } from '../store/store.ts';
import type { Principal } from './principal.ts';

export interface AuthenticateDeps {
  store: Store;
  clock: Clock;
  /** Accepted peppers, the current one first. */
  peppers: readonly [Pepper, ...Pepper[]];
}

/** A bearer token becomes a principal. Throws the 401 of decisions.md, section 3, otherwise. */
export type Authenticate = (token: string | undefined) => Promise<Principal>;

const invalidKey = () => unauthorized('invalid_api_key', 'The API key is not valid.');

/** The door's keeper: mistyped keys are told by their checksum, without a look-up; the status is read afresh on every request. */
export function createAuthenticate({ store, clock, peppers }: AuthenticateDeps): Authenticate {
  const find = async (token: string) => {
    for (const pepper of peppers) {
      const secretHash = hashSecret(token, pepper);
      const found = await store.findKeyByHash(secretHash);
      if (found === undefined) continue;
      // A secret that is about to end keeps its pepper.
      if (pepper !== peppers[0] && found.secretEndsAt === null) renew(found, token, secretHash);
      return found;
    }
    return undefined;
  };
  /** Behind the caller's back; where it fails, the next call tries again. */
  const renew = ({ organizationId, keyId: id }: KeyCredential, token: string, secretHash: string): void =>
    void store
      .write((db) => rehash(db, { table: 'keys', organizationId, id, secretHash }, token, peppers[0]))
      .catch(() => {});

  return async (token) => {
    if (token === undefined)
      throw unauthorized('invalid_api_key', 'No API key was given: send `Authorization: Bearer <key>`.');
    if (!isWellFormedSecret(token, 'gateway')) throw invalidKey();
    const key = await find(token);
    if (key === undefined || key.kind === 'platform_secret') throw invalidKey();
    const now = clock.now();
    if (key.secretEndsAt !== null && key.secretEndsAt <= now) throw invalidKey();
    const refused = refusal(key, now) ?? budgetRefusal(key.budgets, now);
    if (refused !== undefined) throw refused;
    // A key without a present owner has no ceiling that could be judged: it is refused (decisions.md, section 3, "owner").
    if (key.memberId === undefined)
      throw unauthorized('api_key_disabled', 'The owner of this API key has left the organization.');
    return {
      keyId: key.keyId,
      organizationId: key.organizationId,
      projectId: key.projectId,
      memberId: key.memberId,
      subjects: [
        { scope: 'organization', id: key.organizationId },
        { scope: 'member', id: key.memberId },
        { scope: 'key', id: key.keyId },
      ],
      ruleRevision: key.ruleRevision,
      capped: isCapped(key) || key.budgets.length > 0,
      cacheSeconds: key.cachingEnabled ? key.cacheDurationSeconds : undefined,
    };
  };
}
