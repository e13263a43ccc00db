import { notFound } from '../../domain/errors.ts';
import type { CustomProvider } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { countRows, mapPage, type Page, type PageRequest, readPage } from '../db/page.ts';
import { build, toFlag } from '../db/sql.ts';
import type { CustomProvidersTable, Row } from '../db/tables.ts';
import { FORGOTTEN } from './provider-keys.ts';

/** A custom provider as it is stored. */
export type CustomProviderRecord = CustomProvider &
  Pick<Row<CustomProvidersTable>, 'organizationId' | 'createdAt' | 'updatedAt'>;

export type NewCustomProvider = Omit<CustomProviderRecord, 'organizationId' | 'createdAt' | 'updatedAt'>;
export type CustomProviderChanges = Partial<Omit<NewCustomProvider, 'id' | 'name'>>;

export const toCustomProvider = ({
  fieldsJson,
  deletedAt,
  ...row
}: Row<CustomProvidersTable>): CustomProviderRecord => ({
  ...row,
  keyless: row.keyless === 1,
  fields: JSON.parse(fieldsJson),
});

const present = (organizationId: string) =>
  build.selectFrom('custom_providers').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

const providersOf = (organizationId: string) => present(organizationId).selectAll();

export function insertCustomProvider(
  db: Database,
  organizationId: string,
  provider: NewCustomProvider,
  now: number,
): CustomProviderRecord {
  const { fields, ...columns } = provider;
  db.run(
    build.insertInto('custom_providers').values({
      ...columns,
      organizationId,
      keyless: toFlag(provider.keyless),
      fieldsJson: JSON.stringify(fields),
      createdAt: now,
      updatedAt: now,
    }),
  );
  return getCustomProvider(db, organizationId, provider.id);
}

/** The custom provider, or a 404 when it is missing, deleted, or of another organization. */
export function getCustomProvider(db: Database, organizationId: string, id: string): CustomProviderRecord {
  const row = db.get(providersOf(organizationId).where('id', '=', id));
  if (row === undefined) throw notFound('There is no such custom provider.');
  return toCustomProvider(row);
}

/** The custom provider of this name, or undefined when the organization has none. */
export function findCustomProvider(
  db: Database,
  organizationId: string,
  name: string,
): CustomProviderRecord | undefined {
  const row = db.get(providersOf(organizationId).where('name', '=', name));
  return row === undefined ? undefined : toCustomProvider(row);
}

/** Custom providers that are not deleted, newest first. */
export const listCustomProviders = (
  db: Database,
  organizationId: string,
  page: PageRequest,
): Page<CustomProviderRecord> => mapPage(readPage(db, providersOf(organizationId), page), toCustomProvider);

export const countCustomProviders = (db: Database, organizationId: string): number =>
  countRows(db, present(organizationId));

/** Changes a custom provider; 404 when there is none. */
export function updateCustomProvider(
  db: Database,
  organizationId: string,
  id: string,
  changes: CustomProviderChanges,
  now: number,
): CustomProviderRecord {
  const { keyless, fields, ...columns } = changes;
  db.run(
    build
      .updateTable('custom_providers')
      .set({
        ...columns,
        keyless: keyless === undefined ? undefined : toFlag(keyless),
        fieldsJson: fields === undefined ? undefined : JSON.stringify(fields),
        updatedAt: now,
      })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  return getCustomProvider(db, organizationId, id);
}

/** Deletes a custom provider softly, with its models and keys: a later one of its name inherits none. 404 when there is none. */
export function deleteCustomProvider(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    const { name } = getCustomProvider(db, organizationId, id);
    const deletion = { deletedAt: now, updatedAt: now };
    db.run(
      build
        .updateTable('custom_models')
        .set(deletion)
        .where('organizationId', '=', organizationId)
        .where('customProviderId', '=', id)
        .where('deletedAt', 'is', null),
    );
    db.run(
      build
        .updateTable('provider_keys')
        .set({ ...FORGOTTEN, ...deletion })
        .where('organizationId', '=', organizationId)
        .where('provider', '=', `custom:${name}`)
        .where('deletedAt', 'is', null),
    );
    db.run(
      build
        .updateTable('custom_providers')
        .set(deletion)
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
  });
}
