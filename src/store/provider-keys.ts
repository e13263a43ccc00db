import type { Selectable } from 'kysely';
import { notFound } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { build } from './sql.ts';
import type { ProviderKeysTable } from './tables.ts';

/** A customer's own credential at a provider; `ciphertext` is AES-256-GCM under the server's encryption key. */
export interface ProviderKeyRecord {
  readonly id: string;
  readonly organizationId: string;
  /** Null: every project of the organization may use it. */
  readonly projectId: string | null;
  readonly providerId: string;
  readonly label: string;
  readonly ciphertext: string;
  readonly encryptionKeyId: string;
  readonly mask: string;
  readonly baseUrl: string | null;
  /** Lower is tried first. */
  readonly position: number;
  readonly status: 'active' | 'inactive';
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewProviderKey = Omit<ProviderKeyRecord, 'createdAt' | 'updatedAt'>;

const toRecord = (row: Selectable<ProviderKeysTable>): ProviderKeyRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  projectId: row.project_id,
  providerId: row.provider_id,
  label: row.label,
  ciphertext: row.ciphertext,
  encryptionKeyId: row.encryption_key_id,
  mask: row.mask,
  baseUrl: row.base_url,
  position: row.position,
  status: row.status,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export function insertProviderKey(db: Database, key: NewProviderKey, now: number): void {
  db.run(
    build.insertInto('provider_keys').values({
      id: key.id,
      organization_id: key.organizationId,
      project_id: key.projectId,
      provider_id: key.providerId,
      label: key.label,
      ciphertext: key.ciphertext,
      encryption_key_id: key.encryptionKeyId,
      mask: key.mask,
      base_url: key.baseUrl,
      position: key.position,
      status: key.status,
      created_at: now,
      updated_at: now,
    }),
  );
}

/** Credentials that are not deleted, in the order in which they are tried. */
export function listProviderKeys(db: Database, organizationId: string): ProviderKeyRecord[] {
  return db
    .all(
      build
        .selectFrom('provider_keys')
        .selectAll()
        .where('organization_id', '=', organizationId)
        .where('deleted_at', 'is', null)
        .orderBy('position')
        .orderBy('id'),
    )
    .map(toRecord);
}

/** Deletes a credential softly and forgets its secret; 404 when there is none. */
export function deleteProviderKey(db: Database, organizationId: string, id: string, now: number): void {
  const deleted = db.run(
    build
      .updateTable('provider_keys')
      .set({ deleted_at: now, updated_at: now, status: 'inactive', ciphertext: '' })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  if (deleted !== 1) throw notFound('There is no such provider key.');
}
