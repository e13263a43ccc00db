import { notFound } from '../../domain/errors.ts';
import type { MappingAttributes, Prices } from '../../domain/model.ts';
import { formatUsd, parseUsd } from '../../domain/money.ts';
import type { Database } from '../db/database.ts';
import { countRows, mapPage, type Page, type PageRequest, readPage } from '../db/page.ts';
import { build, toFlag } from '../db/sql.ts';
import type { CustomModelsTable, Row } from '../db/tables.ts';

type CustomModelRow = Row<CustomModelsTable>;

/** What is stored as a flag. */
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

const present = (organizationId: string) =>
  build.selectFrom('custom_models').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

const modelsOf = (organizationId: string) => present(organizationId).selectAll();

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
    present(organizationId).select('id').where('customProviderId', '=', customProviderId).where('model', '=', model),
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
  countRows(db, present(organizationId));

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
