import type { Database } from './database.ts';
import { build } from './sql.ts';

/** How much of what is stored hangs on one pepper or one encryption key. */
export interface SecretNeed {
  readonly id: string;
  readonly count: number;
}

export interface SecretNeeds {
  /** Keys of all kinds, master keys included, by the pepper that their hash is made with. */
  readonly peppers: readonly SecretNeed[];
  /** Provider keys by the encryption key that they are sealed with. */
  readonly encryptionKeys: readonly SecretNeed[];
}

/** What the present keys of all organizations need of the server's secrets; of deleted ones nothing is needed any more. */
export function readSecretNeeds(db: Pick<Database, 'all'>): SecretNeeds {
  const hashed = (table: 'keys' | 'master_keys'): SecretNeed[] =>
    db.all(
      build
        .selectFrom(table)
        .select((row) => ['pepper_id as id', row.fn.countAll<number>().as('count')])
        .where('deleted_at', 'is', null)
        .groupBy('pepper_id'),
    );
  const encryptionKeys = db.all(
    build
      .selectFrom('provider_keys')
      .select((row) => ['encryption_key_id as id', row.fn.countAll<number>().as('count')])
      .where('deleted_at', 'is', null)
      .groupBy('encryption_key_id'),
  );
  return { peppers: added([...hashed('keys'), ...hashed('master_keys')]), encryptionKeys };
}

function added(needs: readonly SecretNeed[]): SecretNeed[] {
  const counts = new Map<string, number>();
  for (const { id, count } of needs) counts.set(id, (counts.get(id) ?? 0) + count);
  return [...counts].map(([id, count]) => ({ id, count }));
}

interface Accepted {
  readonly peppers: readonly { readonly id: string }[];
  readonly encryptionKeys: readonly { readonly id: string }[];
}

/** The ids that are needed and not there, in words; empty: all are there. */
export function missingSecrets(needs: SecretNeeds, accepted: Accepted): string[] {
  const missing = (wanted: readonly SecretNeed[], there: Accepted['peppers'], what: string): string[] =>
    wanted.filter(({ id }) => !there.some((each) => each.id === id)).map(({ id, count }) => `${what} ${id} (${count})`);
  return [
    ...missing(needs.peppers, accepted.peppers, 'pepper'),
    ...missing(needs.encryptionKeys, accepted.encryptionKeys, 'encryption key'),
  ];
}
