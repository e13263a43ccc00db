import type { Known } from './apply-facts.ts';
import type { Joined } from './join.ts';
import { makerName } from './model-table.ts';
import { writtenPrices } from './price-list.ts';
import { CAPABILITIES } from './vocabulary.ts';

/** The content of `data/<provider>.json`. @param cancellation whether the provider stops work when a call is cancelled */
export function dataFile(joined: readonly Joined[], date: string, cancellation: boolean | undefined): object {
  return { date, models: joined.map((mapping) => writtenModel(mapping, cancellation)) };
}

function writtenModel(
  { model, provider, externalId, known, created }: Joined,
  cancellation: boolean | undefined,
): object {
  return {
    id: model.id,
    name: model.name,
    ...(model.aliases.length === 0 ? {} : { aliases: model.aliases }),
    description: `${model.name} by ${makerName(model.maker)}.`,
    family: model.maker,
    created: `${created}T00:00:00Z`,
    ...(known.tokenizer === undefined ? {} : { tokenizer: known.tokenizer }),
    ...(known.moderated === undefined ? {} : { moderated: known.moderated }),
    mappings: [{ providerId: provider, externalId, ...writtenKnown(known, cancellation) }],
  };
}

/** `JSON.stringify` leaves out what is undefined: what is not known is not written. */
function writtenKnown(known: Known, cancellation: boolean | undefined): object {
  const { charges } = known;
  return {
    prices: writtenPrices(charges.prices),
    tiers:
      charges.tiers.length === 0
        ? undefined
        : charges.tiers.map((tier) => ({ ...tier, prices: writtenPrices(tier.prices) })),
    free: known.free || undefined,
    contextLength: known.contextLength,
    maxOutput: known.maxOutput,
    minCacheableTokens: known.minCacheableTokens,
    inputModalities: known.input,
    outputModalities: known.output,
    capabilities: writtenCapabilities(known),
    cancellation,
    reasoningEfforts: known.efforts,
    supportedParameters: writtenParameters(known),
    stability: known.stability,
    deprecatedAt: known.deprecatedAt,
    deactivatedAt: known.deactivatedAt,
  };
}

function writtenCapabilities({ capabilities, input }: Known): string[] {
  const vision = input.includes('image');
  return CAPABILITIES.filter((name) => (name === 'vision' ? vision : capabilities.has(name)));
}

/** The documented parameters and those that follow from what the mapping can do; absent where none are documented. */
function writtenParameters({ parameters, capabilities, efforts }: Known): string[] | undefined {
  if (parameters.length === 0) return undefined;
  const all = [...parameters];
  if (capabilities.has('tools')) all.push('tools', 'tool_choice');
  if (capabilities.has('parallelToolCalls')) all.push('parallel_tool_calls');
  if (capabilities.has('jsonOutput') || capabilities.has('structuredOutputs')) all.push('response_format');
  if (efforts !== undefined) all.push('reasoning_effort');
  return all.sort();
}
