import { expireKeys } from '../store/keys.ts';
import type { Store } from '../store/store.ts';

/**
 * The background job of the specification's key states: marks keys inactive whose time to live has passed. The gateway refuses
 * them on time without it; a run that the database cannot take now is made up for by the next.
 * @returns what ends the job
 */
export function startExpiringKeys(store: Pick<Store, 'write'>, intervalMs = 30_000): () => void {
  const timer = setInterval(() => {
    store.write(expireKeys).catch(() => undefined);
  }, intervalMs);
  return () => clearInterval(timer);
}
