import type { Bound } from '../domain/limits.ts';
import type { Mapping, Prices } from '../domain/model.ts';
import { guessTokens } from '../domain/usage.ts';
import type { PolicyInput } from '../generated/types.ts';
import type { Adapter } from '../providers/wire/adapter.ts';

/** An operation of the gateway, by its name in the policy's input. */
export type Action = PolicyInput['action'];

/** The parts of a request that decide what its answer may cost. */
export interface Demand {
  readonly action: PolicyInput['action'];
  /** Bytes of the body without media: no tokenizer makes more tokens of a text than it has bytes. */
  readonly textTokens: number;
  /** Allowances for what is no text. A model's context window bounds it. */
  readonly mediaTokens: number;
  readonly hasAudio: boolean;
  readonly hasPictures: boolean;
  /** Images in the prompt. */
  readonly promptImages: number;
  /** Answers asked for: choices of a chat, images. */
  readonly choices: number;
  /** Most output tokens of each choice, where the caller named them. */
  readonly maxOutputTokens: number | undefined;
  /**
   * Most output tokens of each choice where nobody names them, and neither the longest answer nor the context of the model is
   * known.
   */
  readonly defaultMaxOutputTokens: number;
  /** Fewest to which a spend limit may shorten an answer of which the caller named no maximum. */
  readonly minOutputTokens: number;
  /** Tokens of a predicted answer: the unused ones are charged as output. */
  readonly predictedTokens: number;
  readonly speaks: boolean;
  /** Most web searches; 0: none is asked for. */
  readonly searches: number;
}

/** Everything that the core must know of one operation to resolve its model, to bound its cost and to refuse it. */
interface Operation {
  /** Service of a model, as in "does not make images". */
  readonly service: string;
  /** Field of the request that names the model, as a JSON pointer; null: the operator chooses the model. */
  readonly modelParam: '/model' | null;
  /** Whether the model's output is an answer to it. */
  gives(mapping: Pick<Mapping, 'outputModalities'>): boolean;
  /** Whether a provider's wire format has it; absent: every one does. */
  speaks?(adapter: Adapter): boolean;
  /** Price that has to be known while a spend limit applies, as in "no price of the model is known". */
  readonly priceName: string;
  isPriced(prices: Prices, freeFlag: boolean): boolean;
  /** The most that a mapping with known prices may charge. */
  bound(mapping: Mapping, demand: Demand): Bound;
  /** Whether a spend limit may shorten an answer of which the caller named no maximum. */
  readonly canBeShortened: boolean;
}

/** One entry for each operation: a new one is added here, and nothing compiles until each of its facts is stated. */
export const OPERATIONS: Readonly<Record<Action, Operation>> = {
  chat: {
    service: 'complete chats',
    modelParam: '/model',
    // Models that draw complete chats too, with the picture in the message.
    gives: ({ outputModalities }) => !outputModalities.includes('moderation'),
    priceName: 'price',
    isPriced: ({ prompt, completion }) => prompt !== undefined && completion !== undefined,
    bound: chatBound,
    canBeShortened: true,
  },
  image: {
    service: 'make images',
    modelParam: '/model',
    gives: ({ outputModalities }) => outputModalities.includes('image'),
    speaks: ({ images }) => images !== undefined,
    priceName: 'price',
    isPriced: ({ prompt, completion, output_image: imageToken, per_image: image }) =>
      image !== undefined || (prompt !== undefined && (imageToken ?? completion) !== undefined),
    bound: imageBound,
    canBeShortened: false,
  },
  moderation: {
    service: 'moderate',
    modelParam: null,
    gives: ({ outputModalities }) => outputModalities.includes('moderation'),
    speaks: ({ moderations }) => moderations !== undefined,
    priceName: 'price of a request',
    // Nobody reports its tokens: a price for them could not be charged.
    isPriced: ({ prompt, request }, freeFlag) => prompt === 0n || request !== undefined || freeFlag,
    bound: (mapping) => ({ fixed: highestPrice(mapping, ['request']), perOutputToken: 0n, maxOutputTokens: 0 }),
    canBeShortened: false,
  },
};

/** The operation for which a list judges a model: the narrowest that it serves. */
export function actionOf(mapping: Pick<Mapping, 'outputModalities'>): Action {
  if (OPERATIONS.moderation.gives(mapping)) return 'moderation';
  return OPERATIONS.image.gives(mapping) ? 'image' : 'chat';
}

/** While a spend limit applies, a mapping whose charge for the action cannot be told may not serve: the limit could not be kept. */
export const isPriced = (mapping: Mapping, action: Action): boolean =>
  listsOf(mapping).every((prices) => OPERATIONS[action].isPriced(prices, mapping.freeFlag));

/**
 * The most that a mapping may charge for a request: `costOf` of no usage within its bounds is more (src/admin/README.md, "hard
 * cap"). Undefined: unknown, since a price is missing.
 */
export const boundOf = (mapping: Mapping, demand: Demand): Bound | undefined =>
  isPriced(mapping, demand.action) ? OPERATIONS[demand.action].bound(mapping, demand) : undefined;

/** Tokens of one generated image, at most, where images are charged by the token. */
const IMAGE_TOKENS = 8192;
/** Images that a chat's choice may hold, at most, where each has a price. */
const IMAGES_OF_CHOICE = 10;

type PriceLists = Pick<Mapping, 'prices' | 'tiers'>;

const listsOf = ({ prices, tiers = [] }: PriceLists): readonly Prices[] => [
  prices,
  ...tiers.map((tier) => tier.prices),
];

/** The highest of some prices over all lists, in pico-dollars; what has no known price costs nothing. */
function highestPrice(lists: PriceLists, names: readonly (keyof Prices)[]): bigint {
  let most = 0n;
  for (const prices of listsOf(lists)) {
    for (const name of names) {
      const price = prices[name] ?? 0n;
      if (price > most) most = price;
    }
  }
  return most;
}

/**
 * The longest answer where the caller names none: the mapping's own, cut to the room that its context has next to a prompt of the
 * usual density; else the context without a dense prompt, since a provider refuses a maximum that does not fit; else the default.
 */
function ownMaximum({ maxOutput, contextLength }: Mapping, { textTokens, defaultMaxOutputTokens }: Demand): number {
  if (contextLength === undefined) return maxOutput ?? defaultMaxOutputTokens;
  const room = contextLength - (maxOutput === undefined ? Math.ceil(textTokens / 2) : guessTokens(textTokens));
  return Math.max(1, Math.min(maxOutput ?? room, room));
}

function largestOutput(mapping: Mapping, demand: Demand): number {
  const { maxOutputTokens: named } = demand;
  if (named === undefined) return ownMaximum(mapping, demand);
  return Math.min(named, mapping.maxOutput ?? named);
}

function inputPrices({ hasAudio, hasPictures }: Demand): (keyof Prices)[] {
  return [
    'prompt',
    'input_cache_read',
    'input_cache_write',
    'input_cache_write_1h',
    ...(hasAudio ? (['input_audio', 'input_audio_cache_read'] as const) : []),
    ...(hasPictures ? (['input_image'] as const) : []),
  ];
}

const outputPrices = ({ speaks }: Demand, { outputModalities }: Mapping): (keyof Prices)[] => [
  'completion',
  'internal_reasoning',
  'output_image',
  ...(speaks || !outputModalities.includes('text') ? (['output_audio'] as const) : []),
];

/** The most that the prompt costs; the part that is not text is bounded by the context window, if that is known. */
function promptBound(mapping: Mapping, demand: Demand, window = demand.mediaTokens): bigint {
  const inputTokens = demand.textTokens + Math.min(demand.mediaTokens, window);
  return (
    highestPrice(mapping, ['request']) +
    BigInt(inputTokens) * highestPrice(mapping, inputPrices(demand)) +
    BigInt(demand.promptImages) * highestPrice(mapping, ['image'])
  );
}

function imageBound(mapping: Mapping, demand: Demand): Bound {
  const tokens = BigInt(Math.min(IMAGE_TOKENS, mapping.maxOutput ?? IMAGE_TOKENS));
  const each = highestPrice(mapping, ['per_image']) + tokens * highestPrice(mapping, outputPrices(demand, mapping));
  const fixed = promptBound(mapping, demand) + BigInt(demand.choices) * each;
  return { fixed, perOutputToken: 0n, maxOutputTokens: 0 };
}

function chatBound(mapping: Mapping, demand: Demand): Bound {
  const choices = BigInt(demand.choices);
  const outputPrice = highestPrice(mapping, outputPrices(demand, mapping));
  const fixed =
    promptBound(mapping, demand, mapping.contextLength) +
    BigInt(demand.searches) * highestPrice(mapping, ['web_search']) +
    choices *
      (BigInt(IMAGES_OF_CHOICE) * highestPrice(mapping, ['per_image']) + BigInt(demand.predictedTokens) * outputPrice);
  const maxOutputTokens = outputPrice === 0n ? 0 : largestOutput(mapping, demand);
  return { fixed, perOutputToken: choices * outputPrice, maxOutputTokens };
}
