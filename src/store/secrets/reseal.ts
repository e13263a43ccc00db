import { type EncryptionKey, openSecret, sealSecret } from '../../domain/sealed-secret.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

export interface Resealed {
  readonly resealed: number;
  /** Ids of provider keys that no key opens: they are left as they are. */
  readonly unopened: readonly string[];
}

/** Seals the secrets of all present provider keys with the first key, in one transaction. */
export function resealProviderKeys(db: Database, keys: readonly [EncryptionKey, ...EncryptionKey[]]): Resealed {
  return db.transaction(() => {
    const rows = db.all(
      build
        .selectFrom('provider_keys')
        .select(['id', 'organizationId', 'ciphertext', 'encryptionKeyId'])
        .where('deletedAt', 'is', null)
        .where('encryptionKeyId', '<>', keys[0].id),
    );
    const unopened: string[] = [];
    for (const { id, organizationId, ciphertext, encryptionKeyId: keyId } of rows) {
      const secret = tryOpen(() => openSecret({ keyId, ciphertext }, id, ...keys));
      if (secret === undefined) {
        unopened.push(id);
        continue;
      }
      const sealed = sealSecret(secret, id, keys[0]);
      db.run(
        build
          .updateTable('provider_keys')
          .set({ ciphertext: sealed.ciphertext, encryptionKeyId: sealed.keyId })
          .where('organizationId', '=', organizationId)
          .where('id', '=', id),
      );
    }
    return { resealed: rows.length - unopened.length, unopened };
  });
}

function tryOpen(open: () => string): string | undefined {
  try {
    return open();
  } catch {
    return undefined;
  }
}
