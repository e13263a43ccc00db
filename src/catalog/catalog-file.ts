import { readFileSync } from 'node:fs';
import { KNOWN_PROVIDERS } from '../config/upstreams.ts';
import { pointerOf } from '../domain/check-shape.ts';
import { parseUsd } from '../domain/limits.ts';
import { type Mapping, mappingNames, type Prices, type PriceTier } from '../domain/model.ts';
import type {
  CatalogFileMapping,
  CatalogFileModel,
  CatalogPrices,
  CatalogProvider,
  KnownProvider,
} from '../generated/types.ts';
import { validator } from '../lib/schemas.ts';

const validateCatalogFile = validator('CatalogFile');

/** A model and all its providers. */
export interface CatalogModel {
  /** Canonical id. */
  readonly id: string;
  readonly name: string;
  readonly aliases: readonly string[];
  readonly description: string;
  /** Maker of the model. */
  readonly family: string;
  /** Epoch seconds; 0 when not known. */
  readonly created: number;
  readonly tokenizer?: string;
  /** Whether its provider moderates; absent when unknown. */
  readonly moderated?: boolean;
  /** At least one; a deactivated one stays here. */
  readonly mappings: readonly Mapping[];
}

/** One part of the catalogue. */
export interface CatalogData {
  /** When the data was taken, `YYYY-MM-DD`. */
  readonly date: string;
  readonly providers: readonly CatalogProvider[];
  readonly models: readonly CatalogModel[];
}

const listed = ({ id, name, trainsOnData, region, retention }: KnownProvider): CatalogProvider => ({
  id,
  name,
  ...(trainsOnData === undefined ? {} : { trainsOnData }),
  ...(region === undefined ? {} : { region }),
  ...(retention === undefined ? {} : { retention }),
});

/**
 * The providers of `src/config/providers.json`. @param moved ids of those that the operator calls at another address, at which
 * nothing that is known of them need hold
 */
export const listedProviders = (moved: readonly string[] = []): readonly CatalogProvider[] =>
  KNOWN_PROVIDERS.map((provider) =>
    moved.includes(provider.id) ? { id: provider.id, name: provider.name } : listed(provider),
  );

/** `data/<name>.json`, read each time. @param known of providers that the file does not describe @throws Error that names the file and the first wrong place in it */
export function readDataFile(name: string, known = listedProviders()): CatalogData {
  const file = `data/${name}.json`;
  try {
    return catalogData(JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8')), known);
  } catch (cause) {
    throw new Error(`${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
}

/** A parsed data file (schemas/catalog/catalog-file.json) as catalogue objects. @throws Error that names the first wrong place */
export function catalogData(file: unknown, known = listedProviders()): CatalogData {
  if (!validateCatalogFile(file)) throw dataFault(pointerOf(validateCatalogFile.errors?.[0]));
  const { date, providers = [], models = [] } = file;
  const byId = new Map([...known, ...providers].map((provider) => [provider.id, provider]));
  return { date, providers, models: models.map((model, position) => modelOf(model, byId, `/models/${position}`)) };
}

/** The files are part of the program, so this is a fault of ours. */
const dataFault = (place: string): Error => new Error(`catalogue data: wrong value at ${place}`);

type Providers = ReadonlyMap<string, CatalogProvider>;

function modelOf(
  { aliases = [], created, mappings, ...model }: CatalogFileModel,
  providers: Providers,
  place: string,
): CatalogModel {
  return {
    ...model,
    aliases,
    created: Date.parse(created) / 1000,
    mappings: mappings.map((each, position) =>
      mappingOf(each, providers.get(each.providerId), { id: model.id, aliases }, `${place}/mappings/${position}`),
    ),
  };
}

function mappingOf(
  { capabilities, free = false, prices, tiers, ...stated }: CatalogFileMapping,
  provider: CatalogProvider | undefined,
  { id: modelId, aliases }: Pick<CatalogModel, 'id' | 'aliases'>,
  place: string,
): Mapping {
  const { providerId, externalId } = stated;
  const can = new Set(capabilities);
  const region = stated.region ?? provider?.region;
  return {
    ...stated,
    ...(region === undefined ? {} : { region }),
    tags: tagsOf(provider, region, stated.stability),
    id: `${providerId}/${modelId}`,
    modelId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId }, aliases),
    providerNames: [providerId],
    prices: pricesOf(prices),
    ...(tiers === undefined ? {} : { tiers: tiersOf(tiers, `${place}/tiers`) }),
    freeFlag: free,
    streaming: can.has('streaming'),
    vision: can.has('vision'),
    tools: can.has('tools'),
    parallelToolCalls: can.has('parallelToolCalls'),
    reasoning: can.has('reasoning'),
    jsonOutput: can.has('jsonOutput'),
    structuredOutputs: can.has('structuredOutputs'),
    ...(can.has('realtime') ? { realtime: true } : {}),
  };
}

/** Facts that the catalogue has of a mapping, for rules to ask for (policy/reference.md, "Tags"). An unknown fact is no tag. */
function tagsOf(provider: CatalogProvider | undefined, region: string | undefined, stability: string): string[] {
  return [
    ...(provider?.trainsOnData === false ? ['no_training'] : []),
    ...(region === undefined ? [] : [`region:${region}`]),
    ...(provider?.retention === undefined ? [] : [`retention:${provider.retention}`]),
    `stability:${stability}`,
  ];
}

/** As pico-dollars. */
const pricesOf = (prices: CatalogPrices): Prices =>
  Object.fromEntries(Object.entries(prices).map(([name, usd]) => [name, parseUsd(usd)]));

function tiersOf(tiers: NonNullable<CatalogFileMapping['tiers']>, place: string): PriceTier[] {
  return tiers.map(({ abovePromptTokens, prices }, position) => {
    if (abovePromptTokens <= (tiers[position - 1]?.abovePromptTokens ?? 0)) {
      throw dataFault(`${place}/${position}/abovePromptTokens`);
    }
    return { abovePromptTokens, prices: pricesOf(prices) };
  });
}
