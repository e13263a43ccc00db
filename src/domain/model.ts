/**
 * Prices of a mapping, in integer pico-dollars (1e-12 USD). Token prices are per token. Absent: unknown; `0n`: nothing. Names
 * follow the specification's pricing object.
 */
export interface Prices {
  readonly prompt?: bigint;
  readonly completion?: bigint;
  readonly input_cache_read?: bigint;
  readonly input_cache_write?: bigint;
  readonly input_cache_write_1h?: bigint;
  readonly internal_reasoning?: bigint;
  readonly input_audio?: bigint;
  readonly input_audio_cache_read?: bigint;
  readonly output_audio?: bigint;
  /** Per token of an image in the prompt. */
  readonly input_image?: bigint;
  /** Per token of a generated image. */
  readonly output_image?: bigint;
  /** Per input image, in addition to its tokens. */
  readonly image?: bigint;
  /** Per request. */
  readonly request?: bigint;
  /** Per web search. */
  readonly web_search?: bigint;
  /** Per generated image. */
  readonly per_image?: bigint;
}

/** Prices of a mapping for calls with a long prompt: for all of the call's tokens, not only those above. */
export interface PriceTier {
  /** The tier holds for prompts of more tokens than this. */
  readonly abovePromptTokens: number;
  /** The whole price list; what the tier does not change stands in it too. */
  readonly prices: Prices;
}

/** Capabilities and limits of one model at one provider; absent means unknown. */
export interface MappingAttributes {
  /** Known properties that rules may ask for, such as `region:eu` (policy/reference.md, "Tags"). Sorted, without repeats. */
  readonly tags: readonly string[];
  readonly contextLength?: number;
  readonly maxOutput?: number;
  readonly inputModalities: readonly string[];
  readonly outputModalities: readonly string[];
  readonly streaming: boolean;
  readonly vision: boolean;
  readonly tools: boolean;
  readonly parallelToolCalls: boolean;
  readonly reasoning: boolean;
  readonly reasoningEfforts?: readonly string[];
  readonly jsonOutput: boolean;
  readonly structuredOutputs: boolean;
  /** The provider stops work when a call is cancelled. */
  readonly cancellation?: boolean;
  readonly realtime?: boolean;
  /** Shortest prompt, in tokens, that the provider caches. */
  readonly minCacheableTokens?: number;
  readonly supportedParameters?: readonly string[];
  readonly stability: 'stable' | 'beta' | 'unstable' | 'experimental';
  /** RFC 3339. */
  readonly deprecatedAt?: string;
  /** RFC 3339; from then on the mapping is no candidate. */
  readonly deactivatedAt?: string;
}

/** A mapping of which nothing is known but that it completes text: it claims no more. */
export const TEXT_ONLY: MappingAttributes = {
  tags: [],
  inputModalities: ['text'],
  outputModalities: ['text'],
  streaming: true,
  vision: false,
  tools: false,
  parallelToolCalls: false,
  reasoning: false,
  jsonOutput: false,
  structuredOutputs: false,
  stability: 'stable',
};

/** A mapping: one model at one provider. Immutable; made by the catalogue, or from a custom model. */
export interface Mapping extends MappingAttributes {
  /** `provider/model`, unique. */
  readonly id: string;
  readonly providerId: string;
  /** Canonical model id. */
  readonly modelId: string;
  /** The upstream's own id of the model. */
  readonly externalId: string;
  readonly region?: string;
  /** True for a model of a custom provider. */
  readonly custom: boolean;
  /**
   * Revision of a custom model: changes when the model is added again under its name, or its provider is added again or
   * changed. Memory of one revision must not serve another.
   */
  readonly revision?: string;
  /** Time at which a custom model was added, epoch milliseconds. */
  readonly createdAt?: number;
  /** Every name by which model rules may mean it (policy/reference.md, "IAM rules"). */
  readonly names: readonly string[];
  /** Every name by which provider rules may mean it: the id, or `custom` and `custom:<name>`. */
  readonly providerNames: readonly string[];
  readonly prices: Prices;
  /** Shortest prompts first. IAM rules on prices judge `prices`, what the list shows. */
  readonly tiers?: readonly PriceTier[];
  /** Flagged free by the catalogue. Sets the pricing type only. */
  readonly freeFlag: boolean;
}

/**
 * Pricing type `free` (src/domain/README.md, "free"): no known price above zero, per request and image included, and input and
 * output price known or the mapping flagged free. Everything else is `paid`.
 */
export function isFree(mapping: Pick<Mapping, 'prices' | 'tiers' | 'freeFlag'>): boolean {
  const { prices, tiers = [] } = mapping;
  for (const list of [prices, ...tiers.map((tier) => tier.prices)]) {
    for (const price of Object.values(list)) if (price > 0n) return false;
  }
  return mapping.freeFlag || (prices.prompt !== undefined && prices.completion !== undefined);
}

/**
 * Every name of a catalogue mapping (policy/reference.md, "IAM rules"): canonical id and aliases, bare and behind the
 * provider, and the provider's own id of the model behind the provider.
 */
export function mappingNames(
  { providerId, modelId, externalId }: Pick<Mapping, 'providerId' | 'modelId' | 'externalId'>,
  aliases: readonly string[],
): readonly string[] {
  const bare = [modelId, ...aliases];
  return [...new Set([...bare, ...[...bare, externalId].map((name) => `${providerId}/${name}`)])];
}

/**
 * Order of preference by price. First those whose token prices are known, by the sum of one input and one output token, then by
 * their fees; then those of which fees alone are known; then the rest. Ties by id.
 */
export function comparePrice(a: Mapping, b: Mapping): number {
  const [aTokens, bTokens] = [tokenPrice(a), tokenPrice(b)];
  if (aTokens !== bTokens) return compareKnown(aTokens, bTokens);
  const without = aTokens === undefined ? undefined : 0n; // where token prices are stated, no stated fee means none
  const [aFees, bFees] = [fees(a) ?? without, fees(b) ?? without];
  if (aFees !== bFees) return compareKnown(aFees, bFees);
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0;
}

const tokenPrice = ({ prices }: Mapping): bigint | undefined =>
  prices.prompt === undefined || prices.completion === undefined ? undefined : prices.prompt + prices.completion;

/** Per generated image and per request. */
const fees = ({ prices }: Mapping): bigint | undefined =>
  prices.per_image === undefined && prices.request === undefined
    ? undefined
    : (prices.per_image ?? 0n) + (prices.request ?? 0n);

/** Order of two values that differ: an unknown value comes last. */
function compareKnown(a: bigint | undefined, b: bigint | undefined): number {
  if (a === undefined) return 1;
  if (b === undefined) return -1;
  return a < b ? -1 : 1;
}
