import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { SealedProviderKey } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { countRows, mapPage, type Page, type PageRequest, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { ProviderKeysTable, Row } from '../db/tables.ts';

/** A provider key as it is stored. */
export type ProviderKeyRecord = SealedProviderKey &
  Omit<Row<ProviderKeysTable>, 'ciphertext' | 'encryptionKeyId' | 'deletedAt'>;

export type NewProviderKey = Omit<ProviderKeyRecord, 'organizationId' | 'position' | 'createdAt' | 'updatedAt'>;
export type ProviderKeyChanges = Partial<Omit<NewProviderKey, 'id' | 'provider'>>;

export function toProviderKey(stored: Row<ProviderKeysTable>): ProviderKeyRecord {
  const { ciphertext, encryptionKeyId, deletedAt, ...row } = stored;
  return { ...row, secret: { keyId: encryptionKeyId, ciphertext } };
}

/** Remains of the secret of a deleted key. */
export const FORGOTTEN = { ciphertext: '', mask: '' } as const;

const present = (organizationId: string) =>
  build.selectFrom('provider_keys').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

const keysOf = (organizationId: string) => present(organizationId).selectAll();

/** Stores a provider key behind the others of its provider. */
export function insertProviderKey(
  db: Database,
  organizationId: string,
  key: NewProviderKey,
  now: number,
): ProviderKeyRecord {
  const { secret, ...columns } = key;
  db.run(
    build.insertInto('provider_keys').values({
      ...columns,
      organizationId,
      ciphertext: secret.ciphertext,
      encryptionKeyId: secret.keyId,
      position: keysOfProvider(db, organizationId, key.provider).length + 1,
      createdAt: now,
      updatedAt: now,
    }),
  );
  return getProviderKey(db, organizationId, key.id);
}

/** The provider key, or a 404 when it is missing, deleted, or of another organization. */
export function getProviderKey(db: Database, organizationId: string, id: string): ProviderKeyRecord {
  const row = db.get(keysOf(organizationId).where('id', '=', id));
  if (row === undefined) throw notFound('There is no such provider key.');
  return toProviderKey(row);
}

/** Provider keys that are not deleted, newest first; of one provider when it is named. */
export function listProviderKeys(
  db: Database,
  organizationId: string,
  { provider, ...page }: PageRequest & { readonly provider?: string | undefined },
): Page<ProviderKeyRecord> {
  const query = keysOf(organizationId);
  const wanted = provider === undefined ? query : query.where('provider', '=', provider);
  return mapPage(readPage(db, wanted, page), toProviderKey);
}

export const countProviderKeys = (db: Database, organizationId: string): number =>
  countRows(db, present(organizationId));

/** The keys of one provider in the order in which they are tried. */
export const keysOfProvider = (db: Database, organizationId: string, provider: string): ProviderKeyRecord[] =>
  db.all(keysOf(organizationId).where('provider', '=', provider).orderBy('position').orderBy('id')).map(toProviderKey);

/** Ids of the keys that are for this project alone. */
export const providerKeysOfProject = (db: Database, organizationId: string, projectId: string): string[] =>
  db.all(present(organizationId).select('id').where('projectId', '=', projectId)).map(({ id }) => id);

/** Puts a key at a place (from 1) among those of its provider, which are numbered again; beyond the last: last. */
export function placeProviderKey(db: Database, organizationId: string, id: string, position: number): void {
  db.transaction(() => {
    const { provider } = getProviderKey(db, organizationId, id);
    const others = keysOfProvider(db, organizationId, provider).filter((key) => key.id !== id);
    number(db, organizationId, others.map((key) => key.id).toSpliced(position - 1, 0, id));
  });
}

function number(db: Database, organizationId: string, ids: readonly string[]): void {
  for (const [index, id] of ids.entries()) {
    db.run(
      build
        .updateTable('provider_keys')
        .set({ position: index + 1 })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
  }
}

/** Changes a provider key; 404 when there is none. */
export function updateProviderKey(
  db: Database,
  organizationId: string,
  id: string,
  changes: ProviderKeyChanges,
  now: number,
): ProviderKeyRecord {
  const { secret, ...columns } = changes;
  db.run(
    build
      .updateTable('provider_keys')
      .set({ ...columns, ciphertext: secret?.ciphertext, encryptionKeyId: secret?.keyId, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  return getProviderKey(db, organizationId, id);
}

/** Deletes a provider key softly and forgets its secret; those behind it move up. 404 when there is none. */
export function deleteProviderKey(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    const { provider } = getProviderKey(db, organizationId, id);
    db.run(
      build
        .updateTable('provider_keys')
        .set({ ...FORGOTTEN, deletedAt: now, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    number(
      db,
      organizationId,
      keysOfProvider(db, organizationId, provider).map((key) => key.id),
    );
  });
}

/** Counts the organizations' own credentials that calls use, by provider id; a custom one is `custom:<name>`. */
export const countActiveProviderKeys = (db: Database): { providerId: string; count: number }[] =>
  db.all(
    build
      .selectFrom('provider_keys')
      .select(['provider as providerId', sql<number>`count(*)`.as('count')])
      .where('deletedAt', 'is', null)
      .where('status', '=', 'active')
      .groupBy('provider')
      .orderBy('provider'),
  );

/** Counts the custom providers of all organizations that need no credential. */
export const countKeylessProviders = (db: Database): number =>
  countRows(db, build.selectFrom('custom_providers').where('deletedAt', 'is', null).where('keyless', '=', 1));
