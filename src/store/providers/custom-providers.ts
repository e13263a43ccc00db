import type { Selectable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { CustomProvider } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { CustomProvidersTable } from '../db/tables.ts';
import { FORGOTTEN } from './provider-keys.ts';

/** A custom provider as it is stored. Times in epoch ms. */
export interface CustomProviderRecord extends CustomProvider {
  readonly organizationId: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewCustomProvider = Omit<CustomProviderRecord, 'organizationId' | 'createdAt' | 'updatedAt'>;
export type CustomProviderChanges = Partial<Omit<NewCustomProvider, 'id' | 'name'>>;

export const toCustomProvider = (row: Selectable<CustomProvidersTable>): CustomProviderRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  wire: row.wire,
  baseUrl: row.base_url,
  keyless: row.keyless === 1,
  fields: JSON.parse(row.fields_json),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

const present = (organizationId: string) =>
  build.selectFrom('custom_providers').where('organization_id', '=', organizationId).where('deleted_at', 'is', null);

export function insertCustomProvider(
  db: Database,
  organizationId: string,
  provider: NewCustomProvider,
  now: number,
): CustomProviderRecord {
  const { id, name, wire, baseUrl, keyless, fields } = provider;
  db.run(
    build.insertInto('custom_providers').values({
      id,
      organization_id: organizationId,
      name,
      wire,
      base_url: baseUrl,
      keyless: keyless ? 1 : 0,
      fields_json: JSON.stringify(fields),
      created_at: now,
      updated_at: now,
    }),
  );
  return getCustomProvider(db, organizationId, id);
}

/** The custom provider, or a 404 when it is missing, deleted, or of another organization. */
export function getCustomProvider(db: Database, organizationId: string, id: string): CustomProviderRecord {
  const row = db.get(present(organizationId).selectAll().where('id', '=', id));
  if (row === undefined) throw notFound('There is no such custom provider.');
  return toCustomProvider(row);
}

/** The custom provider of this name, or undefined when the organization has none. */
export function findCustomProvider(
  db: Database,
  organizationId: string,
  name: string,
): CustomProviderRecord | undefined {
  const row = db.get(present(organizationId).selectAll().where('name', '=', name));
  return row === undefined ? undefined : toCustomProvider(row);
}

/** Custom providers that are not deleted, newest first. */
export function listCustomProviders(
  db: Database,
  organizationId: string,
  page: PageRequest,
): Page<CustomProviderRecord> {
  let query = present(organizationId)
    .selectAll()
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toCustomProvider), page.limit);
}

export const countCustomProviders = (db: Database, organizationId: string): number =>
  db.get(present(organizationId).select((row) => row.fn.countAll<number>().as('count')))?.count ?? 0;

/** Changes a custom provider; 404 when there is none. */
export function updateCustomProvider(
  db: Database,
  organizationId: string,
  id: string,
  changes: CustomProviderChanges,
  now: number,
): CustomProviderRecord {
  const { wire, baseUrl, keyless, fields } = changes;
  db.run(
    build
      .updateTable('custom_providers')
      .set({
        ...(wire === undefined ? {} : { wire }),
        ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
        ...(keyless === undefined ? {} : { keyless: keyless ? 1 : 0 }),
        ...(fields === undefined ? {} : { fields_json: JSON.stringify(fields) }),
        updated_at: now,
      })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  return getCustomProvider(db, organizationId, id);
}

/** Deletes a custom provider softly, with its models and keys: a later one of its name inherits none. 404 when there is none. */
export function deleteCustomProvider(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    const { name } = getCustomProvider(db, organizationId, id);
    const deletion = { deleted_at: now, updated_at: now };
    db.run(
      build
        .updateTable('custom_models')
        .set(deletion)
        .where('organization_id', '=', organizationId)
        .where('custom_provider_id', '=', id)
        .where('deleted_at', 'is', null),
    );
    db.run(
      build
        .updateTable('provider_keys')
        .set({ ...FORGOTTEN, ...deletion })
        .where('organization_id', '=', organizationId)
        .where('provider_id', '=', `custom:${name}`)
        .where('deleted_at', 'is', null),
    );
    db.run(
      build
        .updateTable('custom_providers')
        .set(deletion)
        .where('organization_id', '=', organizationId)
        .where('id', '=', id),
    );
  });
}
