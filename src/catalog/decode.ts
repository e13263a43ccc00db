import { type Mapping, type MappingAttributes, mappingNames, type Prices } from '../domain/model.ts';
import { parseUsd } from '../domain/money.ts';
import type { CatalogModel, CatalogProvider } from './catalog-model.ts';
import { Entry } from './decode-entry.ts';

/** One file of catalogue data. */
export interface CatalogData {
  /** When the data was taken, `YYYY-MM-DD`. */
  readonly date: string;
  readonly providers: readonly CatalogProvider[];
  readonly models: readonly CatalogModel[];
}

const STABILITIES = ['stable', 'beta', 'unstable', 'experimental'] as const;

const PRICE_NAMES = [
  'prompt',
  'completion',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
  'input_audio',
  'output_audio',
  'image',
  'request',
  'web_search',
  'per_image',
] as const satisfies readonly (keyof Prices)[];

/** The fields that are known: unknown and absent are one thing here. */
function present<K extends string, T>(fields: { readonly [P in K]: T | undefined }): { [P in K]?: T };
function present(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Decimal strings in USD, per token where the price is one of tokens, as pico-dollars. */
function decodePrices(entry: Entry): Prices {
  const prices: { -readonly [K in keyof Prices]: Prices[K] } = {};
  for (const name of PRICE_NAMES) {
    const price = entry.optionalText(name);
    if (price !== undefined) prices[name] = parseUsd(price);
  }
  return prices;
}

function decodeAttributes(entry: Entry): MappingAttributes {
  const capabilities = new Set(entry.texts('capabilities'));
  return {
    ...present({ contextLength: entry.optionalCount('contextLength'), maxOutput: entry.optionalCount('maxOutput') }),
    ...present({
      reasoningEfforts: entry.optionalTexts('reasoningEfforts'),
      supportedParameters: entry.optionalTexts('supportedParameters'),
    }),
    ...present({
      deprecatedAt: entry.optionalText('deprecatedAt'),
      deactivatedAt: entry.optionalText('deactivatedAt'),
    }),
    inputModalities: entry.texts('inputModalities'),
    outputModalities: entry.texts('outputModalities'),
    streaming: capabilities.has('streaming'),
    vision: capabilities.has('vision'),
    tools: capabilities.has('tools'),
    parallelToolCalls: capabilities.has('parallelToolCalls'),
    reasoning: capabilities.has('reasoning'),
    jsonOutput: capabilities.has('jsonOutput'),
    structuredOutputs: capabilities.has('structuredOutputs'),
    stability: entry.oneOf('stability', STABILITIES),
  };
}

function decodeMapping(entry: Entry, modelId: string, aliases: readonly string[]): Mapping {
  const providerId = entry.text('providerId');
  return {
    ...decodeAttributes(entry),
    ...present({ region: entry.optionalText('region') }),
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId: entry.text('externalId'),
    custom: false,
    names: mappingNames(providerId, modelId, aliases),
    providerNames: [providerId],
    prices: decodePrices(entry.entry('prices')),
    freeFlag: entry.optionalFlag('free') ?? false,
  };
}

function decodeModel(entry: Entry): CatalogModel {
  const id = entry.text('id');
  const aliases = entry.optionalTexts('aliases') ?? [];
  return {
    ...present({ tokenizer: entry.optionalText('tokenizer') }),
    ...present({ moderated: entry.optionalFlag('moderated') }),
    id,
    name: entry.text('name'),
    aliases,
    description: entry.text('description'),
    family: entry.text('family'),
    created: entry.epochMs('created') / 1000,
    mappings: entry.list('mappings', (mapping) => decodeMapping(mapping, id, aliases)),
  };
}

function decodeProvider(entry: Entry): CatalogProvider {
  return {
    id: entry.text('id'),
    name: entry.text('name'),
    ...present({ trainsOnData: entry.optionalFlag('trainsOnData') }),
  };
}

/** A parsed data file as catalogue objects. @throws Error that names the first wrong place */
export function decodeCatalogData(file: unknown): CatalogData {
  const entry = new Entry(file, '');
  return {
    date: entry.text('date'),
    providers: entry.list('providers', decodeProvider),
    models: entry.list('models', decodeModel),
  };
}
