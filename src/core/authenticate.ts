import { refusal } from '../domain/api-key.ts';
import { unauthorized } from '../domain/errors.ts';
import { hashSecret, isWellFormedSecret, type Pepper } from '../domain/secret.ts';
import type { Clock } from '../domain/time.ts';
import type { Store } from '../store/store.ts';
import type { Principal } from './principal.ts';

export interface AuthenticateDeps {
  store: Store;
  clock: Clock;
  /** Accepted peppers, the current one first. */
  peppers: readonly Pepper[];
}

/** A bearer token becomes a principal. Throws the 401 of decisions.md, section 3, otherwise. */
export type Authenticate = (token: string | undefined) => Promise<Principal>;

const invalidKey = () => unauthorized('invalid_api_key', 'The API key is not valid.');

/** The door's keeper: mistyped keys are told by their checksum, without a look-up; the status is read afresh on every request. */
export function createAuthenticate({ store, clock, peppers }: AuthenticateDeps): Authenticate {
  const find = async (token: string) => {
    for (const pepper of peppers) {
      const found = await store.findKeyByHash(hashSecret(token, pepper));
      if (found !== undefined) return found;
    }
    return undefined;
  };

  return async (token) => {
    if (token === undefined)
      throw unauthorized('invalid_api_key', 'No API key was given: send `Authorization: Bearer <key>`.');
    if (!isWellFormedSecret(token, 'gateway')) throw invalidKey();
    const key = await find(token);
    if (key === undefined || key.kind === 'platform_secret') throw invalidKey();
    const refused = refusal(key, clock.now());
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
      capped: key.usageLimit !== null || key.periodUsageLimit !== null,
      cacheSeconds: key.cachingEnabled ? key.cacheDurationSeconds : undefined,
    };
  };
}
