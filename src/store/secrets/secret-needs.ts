import { sql } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** How many stored items need one pepper or one encryption key. */
export interface SecretNeed {
  readonly id: string;
  readonly count: number;
}

export interface SecretNeeds {
  /** Keys of all kinds, secrets that were rolled and have not ended, master keys and invitations included, by the pepper that their hash is made with. */
  readonly peppers: readonly SecretNeed[];
  /** Provider keys by the encryption key that they are sealed with. */
  readonly encryptionKeys: readonly SecretNeed[];
}

const countById = (column: 'pepperId' | 'encryptionKeyId') =>
  [sql<string>`${sql.ref(column)}`.as('id'), sql<number>`count(*)`.as('count')] as const;

/** False in a database of an earlier version that has not been migrated yet. */
const keepsPreviousSecrets = (db: Pick<Database, 'all'>): boolean => {
  const column = sql<number>`EXISTS (SELECT 1 FROM pragma_table_info('keys') WHERE name = 'previousPepperId')`;
  return db.all(build.selectNoFrom(column.as('exists'))).some(({ exists }) => exists === 1);
};

/**
 * What the keys and open invitations of all organizations need of the server's secrets, at `now` (epoch ms). Of deleted ones
 * nothing is needed any more, and playground keys have no secret. The database may be of an earlier version.
 */
export function readSecretNeeds(db: Pick<Database, 'all'>, now: number): SecretNeeds {
  const keys = build
    .selectFrom('keys')
    .select(countById('pepperId'))
    .where('deletedAt', 'is', null)
    .where('kind', '<>', 'playground')
    .groupBy('pepperId');
  const previousSecrets = build
    .selectFrom('keys')
    .select(['previousPepperId as id', sql<number>`count(*)`.as('count')])
    .where('deletedAt', 'is', null)
    .where('previousSecretEndsAt', '>', now)
    .groupBy('previousPepperId')
    .$narrowType<{ id: string }>();
  const masterKeys = build
    .selectFrom('master_keys')
    .select(countById('pepperId'))
    .where('deletedAt', 'is', null)
    .groupBy('pepperId');
  const invitations = build
    .selectFrom('invitations')
    .select(countById('pepperId'))
    .where('acceptedAt', 'is', null)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
    .groupBy('pepperId');
  const providerKeys = build
    .selectFrom('provider_keys')
    .select(countById('encryptionKeyId'))
    .where('deletedAt', 'is', null)
    .groupBy('encryptionKeyId');
  return {
    peppers: added(
      [keys, ...(keepsPreviousSecrets(db) ? [previousSecrets] : []), masterKeys, invitations].flatMap((query) =>
        db.all(query),
      ),
    ),
    encryptionKeys: db.all(providerKeys),
  };
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

/** Peppers that were dropped: what still needed one was given up. Reads the whole audit log. */
export const listGivenUp = (db: Pick<Database, 'all'>): string[] =>
  db
    .all(build.selectFrom('audit').select('targetId').distinct().where('action', '=', 'pepper.drop'))
    .map(({ targetId: id }) => id);

/** What is needed and not there. */
export function lackingSecrets(needs: SecretNeeds, accepted: Accepted): SecretNeeds {
  const lacking = (wanted: readonly SecretNeed[], there: Accepted['peppers']): SecretNeed[] =>
    wanted.filter(({ id }) => !there.some((each) => each.id === id));
  return {
    peppers: lacking(needs.peppers, accepted.peppers),
    encryptionKeys: lacking(needs.encryptionKeys, accepted.encryptionKeys),
  };
}

/** Secrets in words; empty: there are none. */
export function inWords({ peppers, encryptionKeys }: SecretNeeds): string[] {
  const words =
    (what: string) =>
    ({ id, count }: SecretNeed) =>
      `${what} ${id} (${count})`;
  return [...peppers.map(words('pepper')), ...encryptionKeys.map(words('encryption key'))];
}

/** The ids that are needed and not there, in words; empty: all are there. */
export const missingSecrets = (needs: SecretNeeds, accepted: Accepted): string[] =>
  inWords(lackingSecrets(needs, accepted));
