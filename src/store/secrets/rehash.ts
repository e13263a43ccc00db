import { hashSecret, type Pepper } from '../../domain/secret.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** A key whose secret was shown, and is stored under an older pepper. */
export interface OutdatedHash {
  readonly table: 'keys' | 'master_keys';
  readonly organizationId: string;
  readonly id: string;
  readonly secretHash: string;
}

/**
 * Stores the hash of a key's secret under another pepper. Only who shows the secret makes that possible, so that a pepper is
 * rotated as keys are used. Nothing happens when the key has another secret by now.
 */
export function rehash(
  db: Database,
  { table, organizationId, id, secretHash }: OutdatedHash,
  secret: string,
  pepper: Pepper,
): void {
  db.run(
    build
      .updateTable(table)
      .set({ secretHash: hashSecret(secret, pepper), pepperId: pepper.id })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('secretHash', '=', secretHash),
  );
}
