import { formatUsd } from '../domain/limits.ts';
import { comparePrice, isFree, type Mapping, type Prices } from '../domain/model.ts';
import { isPast, lastDate } from '../domain/time.ts';
import type {
  CatalogProvider,
  Model,
  ModelList,
  ModelMapping,
  ModelPricing,
  PricingTier,
  Stability,
} from '../generated/types.ts';
import type { CatalogModel } from './catalog-file.ts';

/** Query of `GET /v1/models`. */
export interface ModelListOptions {
  readonly includeDeactivated: boolean;
  readonly excludeDeprecated: boolean;
  /** Only what a provider serves that is known not to train on API data. */
  readonly noTraining: boolean;
  /** One entry per mapping, under the id `provider/model`. */
  readonly mapped: boolean;
}

/**
 * The answer of `GET /v1/models` (src/core/README.md, "lists"). A caller that may not use every mapping passes models that hold
 * only those they may; a model without any is left out.
 * @param now epoch milliseconds
 */
export function modelList(
  models: readonly CatalogModel[],
  providers: readonly CatalogProvider[],
  options: ModelListOptions,
  now: number,
): ModelList {
  const byId = new Map(providers.map((provider) => [provider.id, provider]));
  const data: Model[] = [];
  for (const model of models) {
    const mappings = options.noTraining
      ? model.mappings.filter(({ providerId }) => byId.get(providerId)?.trainsOnData === false)
      : model.mappings;
    if (options.mapped) {
      for (const mapping of mappings) {
        const name = `${model.name} (${byId.get(mapping.providerId)?.name ?? mapping.providerId})`;
        if (isListed([mapping], options, now)) data.push(mappedEntry(model, mapping, name));
      }
    } else if (isListed(mappings, options, now)) {
      data.push(aggregatedEntry(model, mappings, options, now));
    }
  }
  return { object: 'list', data };
}

/** A group is deactivated (deprecated) when every mapping in it is past that date. */
function isListed(mappings: readonly Mapping[], options: ModelListOptions, now: number): boolean {
  if (mappings.length === 0) return false;
  if (!options.includeDeactivated && mappings.every((mapping) => isPast(mapping.deactivatedAt, now))) return false;
  return !(options.excludeDeprecated && mappings.every((mapping) => isPast(mapping.deprecatedAt, now)));
}

/** Figures are those of the active mappings; of all of them where none is active. */
function aggregatedEntry(
  model: CatalogModel,
  mappings: readonly Mapping[],
  options: ModelListOptions,
  now: number,
): Model {
  const active = mappings.filter((mapping) => !isPast(mapping.deactivatedAt, now));
  const counted = active.length > 0 ? active : mappings;
  return {
    id: model.id,
    ...entry(model, counted, mappings),
    owned_by: model.family,
    name: model.name,
    display_name: model.name,
    aliases: [...model.aliases],
    description: model.description,
    providers: (options.includeDeactivated ? mappings : counted).map(mappingEntry),
  };
}

function mappedEntry(model: CatalogModel, mapping: Mapping, name: string): Model {
  return {
    id: mapping.id,
    ...entry(model, [mapping], [mapping]),
    owned_by: model.family,
    name,
    display_name: name,
    aliases: mapping.names.filter((other) => other !== mapping.id && other.startsWith(`${mapping.providerId}/`)),
    description: model.description,
    providers: [mappingEntry(mapping)],
  };
}

type Figures = Omit<Model, 'id' | 'owned_by' | 'name' | 'display_name' | 'aliases' | 'description' | 'providers'>;

/** @param counted the mappings whose figures count, at least one @param all those whose dates count */
function entry(model: CatalogModel, counted: readonly Mapping[], all: readonly Mapping[]): Figures {
  const [cheapest] = counted.toSorted(comparePrice);
  const contextLength = maximum(counted.map((mapping) => mapping.contextLength));
  const maxOutput = minimum(counted.map((mapping) => mapping.maxOutput));
  const parameters = union(counted.map((mapping) => mapping.supportedParameters ?? []));
  const deprecatedAt = lastDate(all.map((mapping) => mapping.deprecatedAt));
  const deactivatedAt = lastDate(all.map((mapping) => mapping.deactivatedAt));
  return {
    object: 'model',
    created: model.created,
    family: model.family,
    architecture: {
      input_modalities: union(counted.map((mapping) => mapping.inputModalities)),
      output_modalities: union(counted.map((mapping) => mapping.outputModalities)),
      ...(model.tokenizer === undefined ? {} : { tokenizer: model.tokenizer }),
    },
    ...(model.moderated === undefined ? {} : { top_provider: { is_moderated: model.moderated } }),
    ...(cheapest === undefined ? { pricing: {} } : modelPrices(cheapest)),
    ...(contextLength === undefined ? {} : { context_length: contextLength }),
    ...(maxOutput === undefined ? {} : { max_output: maxOutput }),
    ...(parameters.length === 0 ? {} : { supported_parameters: parameters }),
    json_output: counted.some((mapping) => mapping.jsonOutput),
    structured_outputs: counted.some((mapping) => mapping.structuredOutputs),
    free: counted.some(isFree),
    ...(deprecatedAt === undefined ? {} : { deprecated_at: deprecatedAt }),
    ...(deactivatedAt === undefined ? {} : { deactivated_at: deactivatedAt }),
    stability: mostStable(counted),
  };
}

function mappingEntry(mapping: Mapping): ModelMapping {
  return {
    providerId: mapping.providerId,
    externalId: mapping.externalId,
    ...mappingPrices(mapping),
    streaming: mapping.streaming,
    vision: mapping.vision,
    ...(mapping.realtime === undefined ? {} : { realtime: mapping.realtime }),
    ...(mapping.cancellation === undefined ? {} : { cancellation: mapping.cancellation }),
    tools: mapping.tools,
    parallelToolCalls: mapping.parallelToolCalls,
    reasoning: mapping.reasoning,
    ...(mapping.reasoningEfforts === undefined ? {} : { reasoning_efforts: mapping.reasoningEfforts.filter(isEffort) }),
    ...(mapping.minCacheableTokens === undefined ? {} : { min_cacheable_tokens: mapping.minCacheableTokens }),
    ...(mapping.maxOutput === undefined ? {} : { max_output: mapping.maxOutput }),
    stability: mapping.stability,
    ...(mapping.tags.length === 0 ? {} : { tags: [...mapping.tags] }),
  };
}

const EFFORTS: readonly string[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

type Effort = NonNullable<ModelMapping['reasoning_efforts']>[number];

const isEffort = (effort: string): effort is Effort => EFFORTS.includes(effort);

const known = (values: readonly (number | undefined)[]): number[] => values.filter((value) => value !== undefined);

function maximum(values: readonly (number | undefined)[]): number | undefined {
  const numbers = known(values);
  return numbers.length === 0 ? undefined : Math.max(...numbers);
}

function minimum(values: readonly (number | undefined)[]): number | undefined {
  const numbers = known(values);
  return numbers.length === 0 ? undefined : Math.min(...numbers);
}

const union = (lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];

const STABILITIES: readonly Stability[] = ['stable', 'beta', 'unstable', 'experimental'];

/** A caller gets the best of them. */
const mostStable = (mappings: readonly Mapping[]): Stability =>
  STABILITIES.find((stability) => mappings.some((mapping) => mapping.stability === stability)) ?? 'experimental';

const COMMON = [
  'prompt',
  'completion',
  'image',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'request',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'input_image',
  'output_image',
] as const;

/** Prices that the specification has for a model only, not for a mapping. */
const OF_A_MODEL = [...COMMON, 'web_search', 'internal_reasoning'] as const;

type PriceSource = Pick<Mapping, 'prices' | 'tiers'>;

/** The specification's object of prices, and next to it what long prompts cost, which it has no place for. */
interface ListedPrices {
  readonly pricing: ModelPricing;
  readonly pricing_tiers?: PricingTier[];
}

/** A mapping's prices as the list shows them: decimal strings in USD, unknown ones absent. */
const mappingPrices = (mapping: PriceSource): ListedPrices => pricesOf(mapping, COMMON);

/** The prices of the model's cheapest mapping. */
const modelPrices = (mapping: PriceSource): ListedPrices => pricesOf(mapping, OF_A_MODEL);

function pricesOf({ prices, tiers = [] }: PriceSource, names: typeof COMMON | typeof OF_A_MODEL): ListedPrices {
  const pricing: ModelPricing = flatPricing(prices, names);
  if (prices.per_image !== undefined) pricing.per_image = { default: formatUsd(prices.per_image) };
  if (tiers.length === 0) return { pricing };
  const listed = tiers.map(({ abovePromptTokens, prices: higher }) => ({
    above_prompt_tokens: abovePromptTokens,
    ...flatPricing(higher, names),
  }));
  return { pricing, pricing_tiers: listed };
}

function flatPricing(
  prices: Prices,
  names: typeof COMMON | typeof OF_A_MODEL,
): Omit<PricingTier, 'above_prompt_tokens'> {
  const pricing: Omit<PricingTier, 'above_prompt_tokens'> = {};
  for (const name of names) {
    const price = prices[name];
    if (price !== undefined) pricing[name] = formatUsd(price);
  }
  return pricing;
}
