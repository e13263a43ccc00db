import type { Insertable, Selectable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { MappingAttributes, Prices } from '../../domain/model.ts';
import { formatUsd, parseUsd } from '../../domain/money.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { CustomModelsTable, Flag } from '../db/tables.ts';

/** What can be said of a model at a custom provider. */
type CustomModelAttributes = Pick<
  MappingAttributes,
  | 'streaming'
  | 'vision'
  | 'tools'
  | 'parallelToolCalls'
  | 'reasoning'
  | 'jsonOutput'
  | 'structuredOutputs'
  | 'inputModalities'
  | 'outputModalities'
> & {
  /** Tokens; null: unknown. */
  readonly contextLength: number | null;
  /** Tokens; null: unknown. */
  readonly maxOutput: number | null;
  /** Null: unknown. */
  readonly supportedParameters: readonly string[] | null;
};

/** A custom model as it is stored. Times in epoch ms. */
export interface CustomModelRecord extends CustomModelAttributes {
  readonly id: string;
  readonly organizationId: string;
  readonly customProviderId: string;
  /** The upstream's own id; may hold `/`. */
  readonly model: string;
  readonly displayName: string;
  readonly prices: Prices;
  readonly status: 'active' | 'inactive';
  readonly createdAt: number;
  readonly updatedAt: number;
}

export type NewCustomModel = Omit<CustomModelRecord, 'organizationId' | 'createdAt' | 'updatedAt'>;

const flag = (value: boolean): Flag => (value ? 1 : 0);

/** What this module wrote into a list column. */
const texts = (json: string): readonly string[] => JSON.parse(json);

function toPrices(json: string): Prices {
  const prices: Readonly<Record<string, string>> = JSON.parse(json);
  return Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, parseUsd(price)]));
}

const pricesJson = (prices: Prices): string =>
  JSON.stringify(Object.fromEntries(Object.entries(prices).map(([name, price]) => [name, formatUsd(price)])));

export const toCustomModel = (row: Selectable<CustomModelsTable>): CustomModelRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  customProviderId: row.custom_provider_id,
  model: row.model,
  displayName: row.display_name,
  prices: toPrices(row.prices_json),
  contextLength: row.context_length,
  maxOutput: row.max_output,
  streaming: row.streaming === 1,
  vision: row.vision === 1,
  tools: row.tools === 1,
  parallelToolCalls: row.parallel_tool_calls === 1,
  reasoning: row.reasoning === 1,
  jsonOutput: row.json_output === 1,
  structuredOutputs: row.structured_outputs === 1,
  inputModalities: texts(row.input_modalities_json),
  outputModalities: texts(row.output_modalities_json),
  supportedParameters: row.supported_parameters_json === null ? null : texts(row.supported_parameters_json),
  status: row.status,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

type Columns = Omit<Insertable<CustomModelsTable>, 'organization_id' | 'created_at' | 'updated_at' | 'deleted_at'>;

const toColumns = (model: NewCustomModel): Columns => ({
  id: model.id,
  custom_provider_id: model.customProviderId,
  model: model.model,
  display_name: model.displayName,
  prices_json: pricesJson(model.prices),
  context_length: model.contextLength,
  max_output: model.maxOutput,
  streaming: flag(model.streaming),
  vision: flag(model.vision),
  tools: flag(model.tools),
  parallel_tool_calls: flag(model.parallelToolCalls),
  reasoning: flag(model.reasoning),
  json_output: flag(model.jsonOutput),
  structured_outputs: flag(model.structuredOutputs),
  input_modalities_json: JSON.stringify(model.inputModalities),
  output_modalities_json: JSON.stringify(model.outputModalities),
  supported_parameters_json: model.supportedParameters === null ? null : JSON.stringify(model.supportedParameters),
  status: model.status,
});

const present = (organizationId: string) =>
  build.selectFrom('custom_models').where('organization_id', '=', organizationId).where('deleted_at', 'is', null);

export function insertCustomModel(
  db: Database,
  organizationId: string,
  model: NewCustomModel,
  now: number,
): CustomModelRecord {
  const row = { ...toColumns(model), organization_id: organizationId, created_at: now, updated_at: now };
  db.run(build.insertInto('custom_models').values(row));
  return getCustomModel(db, organizationId, model.id);
}

/** The custom model, or a 404 when it is missing, deleted, or of another organization. */
export function getCustomModel(db: Database, organizationId: string, id: string): CustomModelRecord {
  const row = db.get(present(organizationId).selectAll().where('id', '=', id));
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
    present(organizationId).select('id').where('custom_provider_id', '=', customProviderId).where('model', '=', model),
  ) !== undefined;

/** Custom models that are not deleted, newest first; of one provider when it is named. */
export function listCustomModels(
  db: Database,
  organizationId: string,
  { customProviderId, ...page }: PageRequest & { readonly customProviderId?: string | undefined },
): Page<CustomModelRecord> {
  let query = present(organizationId)
    .selectAll()
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (customProviderId !== undefined) query = query.where('custom_provider_id', '=', customProviderId);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toCustomModel), page.limit);
}

export const countCustomModels = (db: Database, organizationId: string): number =>
  db.get(present(organizationId).select((row) => row.fn.countAll<number>().as('count')))?.count ?? 0;

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
      .set({ ...toColumns(model), updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', model.id)
      .where('deleted_at', 'is', null),
  );
  return getCustomModel(db, organizationId, model.id);
}

/** Deletes a custom model softly; 404 when there is none. */
export function deleteCustomModel(db: Database, organizationId: string, id: string, now: number): void {
  const deleted = db.run(
    build
      .updateTable('custom_models')
      .set({ deleted_at: now, updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  if (deleted !== 1) throw notFound('There is no such custom model.');
}
