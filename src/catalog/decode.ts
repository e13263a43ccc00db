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

/** The fields that are known: unknown and absent are one thing here. */
function present<K extends string, T>(fields: { readonly [P in K]: T | undefined }): { [P in K]?: T };
function present(fields: Record<string, unknown>): Record<string, unknown> {
  for (const [name, value] of Object.entries(fields)) if (value === undefined) delete fields[name];
  return fields;
}

function decodeAttributes(entry: Entry): MappingAttributes {
  const capabilities = new Set(entry.textsOf('capabilities', CAPABILITIES));
  return {
    ...present({
      contextLength: entry.optionalCount('contextLength'),
      maxOutput: entry.optionalCount('maxOutput'),
      minCacheableTokens: entry.optionalCount('minCacheableTokens'),
    }),
    ...present({
      reasoningEfforts: entry.optionalTextsOf('reasoningEfforts', REASONING_EFFORTS),
      supportedParameters: entry.optionalTexts('supportedParameters'),
    }),
    ...present({
      deprecatedAt: entry.optionalDateTime('deprecatedAt'),
      deactivatedAt: entry.optionalDateTime('deactivatedAt'),
    }),
    ...present({ cancellation: entry.optionalFlag('cancellation') }),
    inputModalities: entry.textsOf('inputModalities', MODALITIES),
    outputModalities: entry.textsOf('outputModalities', MODALITIES),
    streaming: capabilities.has('streaming'),
    vision: capabilities.has('vision'),
    tools: capabilities.has('tools'),
    parallelToolCalls: capabilities.has('parallelToolCalls'),
    reasoning: capabilities.has('reasoning'),
    jsonOutput: capabilities.has('jsonOutput'),
    structuredOutputs: capabilities.has('structuredOutputs'),
    ...(capabilities.has('realtime') ? { realtime: true } : {}),
    stability: entry.oneOf('stability', STABILITIES),
  };
}

function decodeMapping(entry: Entry, modelId: string, aliases: readonly string[]): Mapping {
  const providerId = entry.text('providerId');
  const externalId = entry.text('externalId');
  return {
    ...decodeAttributes(entry),
    ...present({ region: entry.optionalText('region') }),
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId,
    custom: false,
    // Behind its provider a model may also be asked for by the provider's own id.
    names: [...new Set([...mappingNames(providerId, modelId, aliases), `${providerId}/${externalId}`])],
    providerNames: [providerId],
    prices: decodePrices(entry.entry('prices')),
    ...present({ tiers: decodeTiers(entry) }),
    freeFlag: entry.optionalFlag('free') ?? false,
  };
}

function decodeModel(entry: Entry): CatalogModel {
  const id = entry.text('id');
  const aliases = entry.optionalTexts('aliases') ?? [];
  const created = entry.optionalDateTime('created');
  return {
    ...present({ tokenizer: entry.optionalText('tokenizer') }),
    ...present({ moderated: entry.optionalFlag('moderated') }),
    id,
    name: entry.text('name'),
    aliases,
    description: entry.text('description'),
    family: entry.text('family'),
    created: created === undefined ? 0 : Date.parse(created) / 1000,
    mappings: entry.list('mappings', (mapping) => decodeMapping(mapping, id, aliases)),
  };
}

function decodeProvider(entry: Entry): CatalogProvider {
  return {
    id: entry.text('id'),
    name: entry.text('name'),
    ...present({ trainsOnData: entry.optionalFlag('trainsOnData') }),
    ...present({ wire: entry.optionalOneOf('wire', WIRE_FORMATS) }),
    ...present({ baseUrl: entry.optionalText('baseUrl') }),
  };
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
