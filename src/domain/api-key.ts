import { type ApiError, invalidRequest, notFound, permissionDenied, unauthorized } from './errors.ts';
import { isSpent, limitChanges, type NewLimits, type SpendLimits, spentRefusal } from './limits.ts';

export type KeyKind = 'regular' | 'playground' | 'platform_secret';
export type KeyStatus = 'active' | 'inactive';
export type KeyState = 'deleted' | 'disabled' | 'expired' | 'limit_reached' | 'active';

/** Fields that decide whether a key may be used. Times in epoch ms, amounts in pico-dollars; null where there is none. */
export interface ApiKey extends SpendLimits {
  readonly kind: KeyKind;
  readonly status: KeyStatus;
  /** Set by disabling only. */
  readonly disabledAt: number | null;
  readonly deletedAt: number | null;
  readonly expiresAt: number | null;
}

/** The state of a key, derived; when several hold: deleted, disabled, expired, limit_reached (src/admin/README.md, "state"). */
export function keyState(key: ApiKey, now: number): KeyState {
  if (key.deletedAt !== null) return 'deleted';
  if (key.disabledAt !== null) return 'disabled';
  if (key.expiresAt !== null && key.expiresAt <= now) return 'expired';
  return isSpent(key, now) ? 'limit_reached' : 'active';
}

/** The 401 with which a request bearing this key is refused at `now`, or undefined when it may pass. */
export function refusal(key: ApiKey, now: number): ApiError | undefined {
  switch (keyState(key, now)) {
    case 'deleted':
      return unauthorized('invalid_api_key', 'The API key is not valid.');
    case 'disabled':
      return unauthorized('api_key_disabled', 'This API key is disabled.');
    case 'expired':
      return unauthorized('api_key_expired', 'This API key has expired.');
    case 'limit_reached':
      return spentRefusal('key', key, now);
    case 'active':
      return undefined;
  }
}

const refuseDeleted = (key: ApiKey): void => {
  if (key.deletedAt !== null) throw notFound('There is no such key.');
};

/** Deleted is 404, then the playground key is 403: whatever is done to it, it is managed by the server. */
function checkChangeable(key: ApiKey, action: string): void {
  refuseDeleted(key);
  if (key.kind === 'playground') throw permissionDenied(`A playground key cannot be ${action}.`);
}

/** Disable action, from any state but deleted. Disabling twice changes nothing. */
export function disable(key: ApiKey, now: number): Partial<ApiKey> {
  checkChangeable(key, 'disabled');
  return key.disabledAt === null ? { status: 'inactive', disabledAt: now } : {};
}

/** Enable action: a TTL in the past is 400 at `/status`, nothing changed, and asks for reactivation. */
export function enable(key: ApiKey, now: number): Partial<ApiKey> {
  checkChangeable(key, 'enabled');
  if (key.expiresAt !== null && key.expiresAt <= now) {
    throw invalidRequest('The key has expired: reactivate it with a new expiration in the future.', '/status');
  }
  return { status: 'active', disabledAt: null };
}

/** Reactivation of an expired key (also one disabled meanwhile) with a new expiration in the future; anything else is 400. */
export function reactivate(key: ApiKey, expiresAt: number, now: number): Partial<ApiKey> {
  checkChangeable(key, 'reactivated');
  if (key.expiresAt === null || key.expiresAt > now) throw invalidRequest('Only an expired key can be reactivated.');
  if (expiresAt <= now) throw invalidRequest('The new expiration must lie in the future.', '/expiresAt');
  return { status: 'active', disabledAt: null, expiresAt };
}

/** Another end, or null for none, of a regular key (403) that has not expired: an expired one is reactivated (400). */
export function setEnd(key: ApiKey, expiresAt: number | null, now: number): Partial<ApiKey> {
  checkChangeable(key, 'given an end');
  if (key.kind !== 'regular') throw permissionDenied('A platform key cannot be given an end.');
  if (key.expiresAt !== null && key.expiresAt <= now) {
    throw invalidRequest('The key has expired: reactivate it with a new expiration in the future.', '/expiresAt');
  }
  if (expiresAt !== null && expiresAt <= now) {
    throw invalidRequest('The new expiration must lie in the future.', '/expiresAt');
  }
  return { expiresAt };
}

/** Change that the background job makes to a key whose TTL has passed: the status alone. */
export const expire = (key: ApiKey, now: number): Partial<ApiKey> =>
  key.expiresAt !== null && key.expiresAt <= now ? { status: 'inactive' } : {};

/** Throws unless the key may be rolled: regular keys only (403), in every state but deleted (404). Rolling changes no state. */
export function checkRollable(key: ApiKey): void {
  refuseDeleted(key);
  if (key.kind !== 'regular') throw permissionDenied('Only a regular gateway key can be rolled.');
}

/** Delete action, from any state. Deletion is soft; a deleted key is 404. */
export function remove(key: ApiKey, now: number): Partial<ApiKey> {
  checkChangeable(key, 'deleted');
  return { status: 'inactive', deletedAt: now };
}

/** Throws unless the key may be given a description or rules. */
export const checkRenamable = (key: ApiKey): void => checkChangeable(key, 'renamed');
export const checkTakesRules = (key: ApiKey): void => checkChangeable(key, 'given rules');

/** Sets the limits. Changing the length of the window ends the running one; changing only the amount keeps it. */
export function setLimits(key: ApiKey, limits: NewLimits): Partial<ApiKey> {
  checkChangeable(key, 'limited');
  return limitChanges(key, limits);
}
