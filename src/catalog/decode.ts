import { type Mapping, type MappingAttributes, mappingNames } from '../domain/model.ts';
import { WIRE_FORMATS } from '../domain/provider.ts';
import type { CatalogModel, CatalogProvider } from './catalog-model.ts';
import { Entry } from './decode-entry.ts';
import { decodePrices, decodeTiers } from './decode-prices.ts';

/** One file of catalogue data. */
export interface CatalogData {
  /** When the data was taken, `YYYY-MM-DD`. */
  readonly date: string;
  readonly providers: readonly CatalogProvider[];
  readonly models: readonly CatalogModel[];
}

export const STABILITIES = ['stable', 'beta', 'unstable', 'experimental'] as const;

export const MODALITIES = ['text', 'image', 'audio', 'video', 'file', 'moderation'] as const;

/** What a data file lists as `capabilities`. */
export const CAPABILITIES = [
  'streaming',
  'vision',
  'tools',
  'parallelToolCalls',
  'reasoning',
  'jsonOutput',
  'structuredOutputs',
  'realtime',
] as const;

export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Sets what is known: unknown and absent are one thing here. */
function set<T, K extends keyof T>(target: T, key: K, value: T[K] | undefined): void {
  if (value !== undefined) target[key] = value;
}

function decodeAttributes(entry: Entry): Mutable<MappingAttributes> {
  const capabilities = entry.textsOf('capabilities', CAPABILITIES);
  const attributes: Mutable<MappingAttributes> = {
    inputModalities: entry.textsOf('inputModalities', MODALITIES),
    outputModalities: entry.textsOf('outputModalities', MODALITIES),
    streaming: capabilities.includes('streaming'),
    vision: capabilities.includes('vision'),
    tools: capabilities.includes('tools'),
    parallelToolCalls: capabilities.includes('parallelToolCalls'),
    reasoning: capabilities.includes('reasoning'),
    jsonOutput: capabilities.includes('jsonOutput'),
    structuredOutputs: capabilities.includes('structuredOutputs'),
    stability: entry.oneOf('stability', STABILITIES),
  };
  if (capabilities.includes('realtime')) attributes.realtime = true;
  set(attributes, 'contextLength', entry.optionalCount('contextLength'));
  set(attributes, 'maxOutput', entry.optionalCount('maxOutput'));
  set(attributes, 'minCacheableTokens', entry.optionalCount('minCacheableTokens'));
  set(attributes, 'reasoningEfforts', entry.optionalTextsOf('reasoningEfforts', REASONING_EFFORTS));
  set(attributes, 'supportedParameters', entry.optionalTexts('supportedParameters'));
  set(attributes, 'cancellation', entry.optionalFlag('cancellation'));
  set(attributes, 'deprecatedAt', entry.optionalDateTime('deprecatedAt'));
  set(attributes, 'deactivatedAt', entry.optionalDateTime('deactivatedAt'));
  return attributes;
}

function decodeMapping(entry: Entry, modelId: string, aliases: readonly string[]): Mapping {
  const providerId = entry.text('providerId');
  const externalId = entry.text('externalId');
  const mapping: Mutable<Mapping> = {
    ...decodeAttributes(entry),
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId }, aliases),
    providerNames: [providerId],
    prices: decodePrices(entry.entry('prices')),
    freeFlag: entry.optionalFlag('free') ?? false,
  };
  set(mapping, 'region', entry.optionalText('region'));
  set(mapping, 'tiers', decodeTiers(entry));
  return mapping;
}

function decodeModel(entry: Entry): CatalogModel {
  const id = entry.text('id');
  const aliases = entry.optionalTexts('aliases') ?? [];
  const model: Mutable<CatalogModel> = {
    id,
    name: entry.text('name'),
    aliases,
    description: entry.text('description'),
    family: entry.text('family'),
    created: Date.parse(entry.dateTime('created')) / 1000,
    mappings: entry.list('mappings', (mapping) => decodeMapping(mapping, id, aliases)),
  };
  set(model, 'tokenizer', entry.optionalText('tokenizer'));
  set(model, 'moderated', entry.optionalFlag('moderated'));
  return model;
}

function decodeProvider(entry: Entry): CatalogProvider {
  const provider: Mutable<CatalogProvider> = { id: entry.text('id'), name: entry.text('name') };
  set(provider, 'trainsOnData', entry.optionalFlag('trainsOnData'));
  set(provider, 'wire', entry.optionalOneOf('wire', WIRE_FORMATS));
  set(provider, 'baseUrl', entry.optionalText('baseUrl'));
  return provider;
}

/** A parsed data file as catalogue objects. @throws Error that names the first wrong place */
export function decodeCatalogData(file: unknown): CatalogData {
  const entry = new Entry(file, '');
  return {
    date: entry.text('date'),
    providers: entry.optionalList('providers', decodeProvider) ?? [],
    models: entry.optionalList('models', decodeModel) ?? [],
  };
}
