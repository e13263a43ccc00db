import { notFound } from '../../domain/errors.ts';
import { formatUsd, parseUsd } from '../../domain/limits.ts';
import type { MappingAttributes, Prices } from '../../domain/model.ts';
import type { CustomProvider } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { countRows, mapPage, type Page, type PageRequest, readPage } from '../db/records.ts';
import { build, toFlag } from '../db/sql.ts';
import type { CustomModelsTable, CustomProvidersTable, Row } from '../db/tables.ts';
import { FORGOTTEN } from './provider-key-records.ts';

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

const presentProviders = (organizationId: string) =>
  build.selectFrom('custom_providers').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

const providersOf = (organizationId: string) => presentProviders(organizationId).selectAll();

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
  countRows(db, presentProviders(organizationId));

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

type CustomModelRow = Row<CustomModelsTable>;

/** Capabilities that are stored as flags. */
type Capabilities = Pick<
  MappingAttributes,
  'streaming' | 'vision' | 'tools' | 'parallelToolCalls' | 'reasoning' | 'jsonOutput' | 'structuredOutputs'
>;

/** A custom model as it is stored. */
export type CustomModelRecord = Capabilities &
  Pick<MappingAttributes, 'inputModalities' | 'outputModalities'> &
  Omit<CustomModelRow, keyof Capabilities | `${string}Json` | 'deletedAt'> & {
    readonly prices: Prices;
    /** Null: unknown. */
    readonly supportedParameters: readonly string[] | null;
  };

export type NewCustomModel = Omit<CustomModelRecord, 'organizationId' | 'createdAt' | 'updatedAt'>;

function toPrices(json: string): Prices {
  const prices: Readonly<Record<string, string>> = JSON.parse(json);
  return Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, parseUsd(price)]));
}

const toJson = (prices: Prices): string =>
  JSON.stringify(Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, formatUsd(price)])));

export function toCustomModel(row: CustomModelRow): CustomModelRecord {
  const { pricesJson, inputModalitiesJson, outputModalitiesJson, supportedParametersJson, deletedAt, ...columns } = row;
  return {
    ...columns,
    prices: toPrices(pricesJson),
    streaming: row.streaming === 1,
    vision: row.vision === 1,
    tools: row.tools === 1,
    parallelToolCalls: row.parallelToolCalls === 1,
    reasoning: row.reasoning === 1,
    jsonOutput: row.jsonOutput === 1,
    structuredOutputs: row.structuredOutputs === 1,
    inputModalities: JSON.parse(inputModalitiesJson),
    outputModalities: JSON.parse(outputModalitiesJson),
    supportedParameters: supportedParametersJson === null ? null : JSON.parse(supportedParametersJson),
  };
}

function toColumns({ prices, inputModalities, outputModalities, supportedParameters, ...model }: NewCustomModel) {
  return {
    ...model,
    pricesJson: toJson(prices),
    streaming: toFlag(model.streaming),
    vision: toFlag(model.vision),
    tools: toFlag(model.tools),
    parallelToolCalls: toFlag(model.parallelToolCalls),
    reasoning: toFlag(model.reasoning),
    jsonOutput: toFlag(model.jsonOutput),
    structuredOutputs: toFlag(model.structuredOutputs),
    inputModalitiesJson: JSON.stringify(inputModalities),
    outputModalitiesJson: JSON.stringify(outputModalities),
    supportedParametersJson: supportedParameters === null ? null : JSON.stringify(supportedParameters),
  };
}

const presentModels = (organizationId: string) =>
  build.selectFrom('custom_models').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

const modelsOf = (organizationId: string) => presentModels(organizationId).selectAll();

export function insertCustomModel(
  db: Database,
  organizationId: string,
  model: NewCustomModel,
  now: number,
): CustomModelRecord {
  const row = { ...toColumns(model), organizationId, createdAt: now, updatedAt: now };
  db.run(build.insertInto('custom_models').values(row));
  return getCustomModel(db, organizationId, model.id);
}

/** The custom model, or a 404 when it is missing, deleted, or of another organization. */
export function getCustomModel(db: Database, organizationId: string, id: string): CustomModelRecord {
  const row = db.get(modelsOf(organizationId).where('id', '=', id));
  if (row === undefined) throw notFound('There is no such custom model.');
  return toCustomModel(row);
}

/** Whether the provider has this model already. */
export const hasCustomModel = (
  db: Database,
  organizationId: string,
  { customProviderId, model }: Pick<CustomModelRecord, 'customProviderId' | 'model'>,
): boolean =>
  db.get(
    presentModels(organizationId)
      .select('id')
      .where('customProviderId', '=', customProviderId)
      .where('model', '=', model),
  ) !== undefined;

/** Custom models that are not deleted, newest first; of one provider when it is named. */
export function listCustomModels(
  db: Database,
  organizationId: string,
  { customProviderId, ...page }: PageRequest & { readonly customProviderId?: string | undefined },
): Page<CustomModelRecord> {
  const query = modelsOf(organizationId);
  const wanted = customProviderId === undefined ? query : query.where('customProviderId', '=', customProviderId);
  return mapPage(readPage(db, wanted, page), toCustomModel);
}

export const countCustomModels = (db: Database, organizationId: string): number =>
  countRows(db, presentModels(organizationId));

/** Writes a custom model as it is to be from now on; 404 when there is none of its id. */
export function replaceCustomModel(
  db: Database,
  organizationId: string,
  model: NewCustomModel,
  now: number,
): CustomModelRecord {
  db.run(
    build
      .updateTable('custom_models')
      .set({ ...toColumns(model), updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', model.id)
      .where('deletedAt', 'is', null),
  );
  return getCustomModel(db, organizationId, model.id);
}

/** Deletes a custom model softly; 404 when there is none. */
export function deleteCustomModel(db: Database, organizationId: string, id: string, now: number): void {
  const deleted = db.run(
    build
      .updateTable('custom_models')
      .set({ deletedAt: now, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  if (deleted !== 1) throw notFound('There is no such custom model.');
}
