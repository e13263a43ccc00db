import type { Selectable, Updateable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { SealedProviderKey } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { ProviderKeysTable } from '../db/tables.ts';

/** A provider key as it is stored. Times in epoch ms. */
export interface ProviderKeyRecord extends SealedProviderKey {
  readonly organizationId: string;
  /** What may be shown of the secret. */
  readonly mask: string;
  /** Its place among the keys of the same provider, from 1; lower ones are tried first, ties go by id. */
  readonly position: number;
  readonly status: 'active' | 'inactive';
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewProviderKey = Omit<ProviderKeyRecord, 'organizationId' | 'position' | 'createdAt' | 'updatedAt'>;
export type ProviderKeyChanges = Partial<Omit<NewProviderKey, 'id' | 'provider'>>;

export const toProviderKey = (row: Selectable<ProviderKeysTable>): ProviderKeyRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  label: row.label,
  provider: row.provider_id,
  projectId: row.project_id,
  baseUrl: row.base_url,
  secret: { keyId: row.encryption_key_id, ciphertext: row.ciphertext },
  mask: row.mask,
  position: row.position,
  status: row.status,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** What is left of the secret of a deleted key. */
export const FORGOTTEN = { ciphertext: '', mask: '' } as const;

const present = (organizationId: string) =>
  build.selectFrom('provider_keys').where('organization_id', '=', organizationId).where('deleted_at', 'is', null);

/** Stores a provider key behind the others of its provider. */
export function insertProviderKey(
  db: Database,
  organizationId: string,
  key: NewProviderKey,
  now: number,
): ProviderKeyRecord {
  db.run(
    build.insertInto('provider_keys').values({
      id: key.id,
      organization_id: organizationId,
      project_id: key.projectId,
      provider_id: key.provider,
      label: key.label,
      ciphertext: key.secret.ciphertext,
      encryption_key_id: key.secret.keyId,
      mask: key.mask,
      base_url: key.baseUrl,
      position: keysOfProvider(db, organizationId, key.provider).length + 1,
      status: key.status,
      created_at: now,
      updated_at: now,
    }),
  );
  return getProviderKey(db, organizationId, key.id);
}

/** The provider key, or a 404 when it is missing, deleted, or of another organization. */
export function getProviderKey(db: Database, organizationId: string, id: string): ProviderKeyRecord {
  const row = db.get(present(organizationId).selectAll().where('id', '=', id));
  if (row === undefined) throw notFound('There is no such provider key.');
  return toProviderKey(row);
}

/** Provider keys that are not deleted, newest first; of one provider when it is named. */
export function listProviderKeys(
  db: Database,
  organizationId: string,
  { provider, ...page }: PageRequest & { readonly provider?: string | undefined },
): Page<ProviderKeyRecord> {
  let query = present(organizationId)
    .selectAll()
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (provider !== undefined) query = query.where('provider_id', '=', provider);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toProviderKey), page.limit);
}

export const countProviderKeys = (db: Database, organizationId: string): number =>
  db.get(present(organizationId).select((row) => row.fn.countAll<number>().as('count')))?.count ?? 0;

/** The keys of one provider in the order in which they are tried. */
export const keysOfProvider = (db: Database, organizationId: string, provider: string): ProviderKeyRecord[] =>
  db
    .all(present(organizationId).selectAll().where('provider_id', '=', provider).orderBy('position').orderBy('id'))
    .map(toProviderKey);

/** Ids of the keys that are for this project alone. */
export const providerKeysOfProject = (db: Database, organizationId: string, projectId: string): string[] =>
  db.all(present(organizationId).select('id').where('project_id', '=', projectId)).map(({ id }) => id);

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
        .where('organization_id', '=', organizationId)
        .where('id', '=', id),
    );
  }
}

function toColumns(changes: ProviderKeyChanges): Updateable<ProviderKeysTable> {
  const row: Updateable<ProviderKeysTable> = {};
  if (changes.label !== undefined) row.label = changes.label;
  if (changes.projectId !== undefined) row.project_id = changes.projectId;
  if (changes.baseUrl !== undefined) row.base_url = changes.baseUrl;
  if (changes.status !== undefined) row.status = changes.status;
  if (changes.mask !== undefined) row.mask = changes.mask;
  if (changes.secret !== undefined) {
    row.ciphertext = changes.secret.ciphertext;
    row.encryption_key_id = changes.secret.keyId;
  }
  return row;
}

/** Changes a provider key; 404 when there is none. */
export function updateProviderKey(
  db: Database,
  organizationId: string,
  id: string,
  changes: ProviderKeyChanges,
  now: number,
): ProviderKeyRecord {
  db.run(
    build
      .updateTable('provider_keys')
      .set({ ...toColumns(changes), updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
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
        .set({ ...FORGOTTEN, deleted_at: now, updated_at: now })
        .where('organization_id', '=', organizationId)
        .where('id', '=', id),
    );
    number(
      db,
      organizationId,
      keysOfProvider(db, organizationId, provider).map((key) => key.id),
    );
  });
}
