import { invalidRequest } from '../../domain/errors.ts';
import { type Prices, TEXT_ONLY } from '../../domain/model.ts';
import { formatUsd, formatUsdPerMillion, parseUsd, parseUsdPerMillion } from '../../domain/money.ts';
import type { CustomModelPatch, CustomModelPrices, CustomModelPricing } from '../../generated/types.ts';
import type { NewCustomModel } from '../../store/providers/custom-provider-records.ts';

/** All that is said of a custom model, and may change. */
export type CustomModelContent = Omit<NewCustomModel, 'id' | 'customProviderId' | 'model'>;

/** A model of which nothing is said but that it is there: it completes text. */
export const NOTHING_SAID: Omit<CustomModelContent, 'displayName'> = {
  prices: {},
  contextLength: null,
  maxOutput: null,
  streaming: TEXT_ONLY.streaming,
  vision: TEXT_ONLY.vision,
  tools: TEXT_ONLY.tools,
  parallelToolCalls: TEXT_ONLY.parallelToolCalls,
  reasoning: TEXT_ONLY.reasoning,
  jsonOutput: TEXT_ONLY.jsonOutput,
  structuredOutputs: TEXT_ONLY.structuredOutputs,
  inputModalities: TEXT_ONLY.inputModalities,
  outputModalities: TEXT_ONLY.outputModalities,
  supportedParameters: null,
  status: 'active',
};

/** What is said of a model after a change; 400 for a price that is none and for fields that contradict each other. */
export function changedContent(before: CustomModelContent, patch: CustomModelPatch): CustomModelContent {
  const { contextLength = before.contextLength, maxOutput = before.maxOutput } = patch;
  const { supportedParameters = before.supportedParameters } = patch;
  return {
    displayName: patch.displayName ?? before.displayName,
    prices: changedPrices(before.prices, pricesIn(patch)),
    contextLength,
    maxOutput,
    streaming: patch.streaming ?? before.streaming,
    tools: patch.tools ?? before.tools,
    parallelToolCalls: patch.parallelToolCalls ?? before.parallelToolCalls,
    reasoning: patch.reasoning ?? before.reasoning,
    jsonOutput: patch.jsonOutput ?? before.jsonOutput,
    structuredOutputs: patch.structuredOutputs ?? before.structuredOutputs,
    ...visionOf(before, patch),
    outputModalities: [...new Set(patch.outputModalities ?? before.outputModalities)],
    supportedParameters,
    status: patch.status ?? before.status,
  };
}

/** `vision` and `image` among the input modalities say the same: whichever is not named follows the other. */
function visionOf(
  before: CustomModelContent,
  patch: CustomModelPatch,
): Pick<CustomModelContent, 'vision' | 'inputModalities'> {
  const vision = patch.vision ?? patch.inputModalities?.includes('image') ?? before.vision;
  const inputModalities = [...new Set(patch.inputModalities ?? impliedModalities(before, vision))];
  if (vision !== inputModalities.includes('image')) {
    throw invalidRequest('vision and image among inputModalities go together.', '/vision');
  }
  return { vision, inputModalities };
}

function impliedModalities(before: CustomModelContent, vision: boolean): readonly string[] {
  if (vision === before.vision) return before.inputModalities;
  if (vision) return [...before.inputModalities, 'image'];
  const others = before.inputModalities.filter((modality) => modality !== 'image');
  return others.length === 0 ? TEXT_ONLY.inputModalities : others;
}

export const PRICE_NAMES = [
  'prompt',
  'completion',
  'request',
  'image',
  'input_cache_read',
  'input_cache_write',
  'input_cache_write_1h',
  'internal_reasoning',
  'input_audio',
  'input_audio_cache_read',
  'output_audio',
  'input_image',
  'output_image',
  'per_image',
  'web_search',
] as const satisfies readonly (keyof Prices)[];

/** The fields of a body that state a token price per million, and the price that each stands for. */
const PER_MILLION = { inputPricePerMillion: 'prompt', outputPricePerMillion: 'completion' } as const;

/** The stated prices, those of tokens from whichever field has them. @throws ApiError 400 for one that both state */
function pricesIn(patch: CustomModelPatch): CustomModelPrices {
  const { pricing = {} } = patch;
  const prices = { ...pricing };
  for (const field of ['inputPricePerMillion', 'outputPricePerMillion'] as const) {
    const price = patch[field];
    if (price === undefined) continue;
    const name = PER_MILLION[field];
    if (pricing[name] !== undefined)
      throw invalidRequest(`/${field} and /pricing/${name} state the same price.`, `/${field}`);
    prices[name] = price === null ? null : formatUsd(parseUsdPerMillion(price, `/${field}`));
  }
  return prices;
}

function changedPrices(before: Prices, given: CustomModelPrices): Prices {
  const prices: Partial<Record<keyof Prices, bigint>> = {};
  for (const name of PRICE_NAMES) {
    const text = given[name];
    const price = typeof text === 'string' ? parseUsd(text, `/pricing/${name}`) : undefined;
    const kept = text === undefined ? before[name] : price;
    if (kept !== undefined) prices[name] = kept;
  }
  return prices;
}

const perMillion = (price: bigint | undefined): string | null =>
  price === undefined ? null : formatUsdPerMillion(price);

/** The token prices in the unit of rules. */
export const showPerMillion = ({ prompt, completion }: Prices) => ({
  inputPricePerMillion: perMillion(prompt),
  outputPricePerMillion: perMillion(completion),
});

/** Prices as admin JSON shows them: every name, null for what is unknown. */
export function showPrices(prices: Prices): CustomModelPricing {
  const show = (price: bigint | undefined): string | null => (price === undefined ? null : formatUsd(price));
  return {
    prompt: show(prices.prompt),
    completion: show(prices.completion),
    request: show(prices.request),
    image: show(prices.image),
    input_cache_read: show(prices.input_cache_read),
    input_cache_write: show(prices.input_cache_write),
    input_cache_write_1h: show(prices.input_cache_write_1h),
    internal_reasoning: show(prices.internal_reasoning),
    input_audio: show(prices.input_audio),
    input_audio_cache_read: show(prices.input_audio_cache_read),
    output_audio: show(prices.output_audio),
    input_image: show(prices.input_image),
    output_image: show(prices.output_image),
    per_image: show(prices.per_image),
    web_search: show(prices.web_search),
  };
}
