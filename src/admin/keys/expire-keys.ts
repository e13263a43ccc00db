import { expire } from '../../domain/api-key.ts';
import type { Database } from '../../store/db/database.ts';
import type { Store } from '../../store/store.ts';
import { listExpiredKeys, updateKey } from '../../store/tenants/key-records.ts';
import { recordChange } from '../audit/audit-trail.ts';
import { viewStoredKey } from './key-view.ts';
import { endDueGrants } from './oauth-grants.ts';

/** Keys in one transaction: a thousand that expire at one instant must not hold up the calls of others. */
const BATCH = 50;

/**
 * The background job of the specification's key states: marks keys inactive whose time to live has passed, and ends applications whose
 * secret has ended. The gateway refuses both on time without it; a run that the database cannot take now is made up for by the next.
 * @returns what ends the job
 */
export function startExpiringKeys(store: Pick<Store, 'write'>, intervalMs = 30_000): () => void {
  const run = async (): Promise<void> => {
    while ((await store.write(expireKeys)) === BATCH);
    while ((await store.write((db, now) => endDueGrants(db, now, BATCH))) === BATCH);
  };
  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    run()
      .catch(() => undefined)
      .finally(() => {
        running = false;
      });
  }, intervalMs);
  return () => clearInterval(timer);
}

/** Marks up to a batch of expired keys inactive, in all organizations; returns how many. */
function expireKeys(db: Database, now: number): number {
  const expired = listExpiredKeys(db, now, BATCH);
  for (const key of expired) {
    const { id, organizationId } = key;
    const before = viewStoredKey(db, key, now);
    const after = viewStoredKey(db, updateKey(db, organizationId, id, expire(key, now), now), now);
    recordChange(db, { kind: 'job', name: 'expire_keys', organizationId }, 'key', 'expire', { before, after }, now);
  }
  return expired.length;
}
