import type { Mapping, Prices } from '../../domain/model.ts';
import { NO_USAGE, type Usage } from '../../domain/usage.ts';
import type { ChatRequest, ChunkDelta, CompletionMessage } from '../../generated/types.ts';
import type { TextToCount, TokenEstimator } from '../../providers/tokens/token-estimate.ts';
import type { UpstreamChunk, UpstreamCompletion } from '../../providers/wire/adapter.ts';
import { imagesIn, promptContent } from './prompt-content.ts';
import { SaidText } from './said-text.ts';

/** An image of 1024 by 1024 pixels, as Google counts one that it made. */
const MADE_IMAGE_TOKENS = 1290;

const NO_TEXT: TextToCount = { texts: [], omittedBytes: 0 };

/** What is to be estimated: text, and sound by its length. */
interface Said extends TextToCount {
  readonly audioTokens: number;
}

/** What an answer has said that matters for its bill; another thread may have read it. */
export interface Told {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  readonly usage: Usage | undefined;
  /** Nothing where the provider reported its usage. */
  readonly said: Said;
  readonly images: number;
}

export interface ProducedOptions {
  /** Tokens of output that the call was held to, over all choices; absent: it was not. */
  readonly mostOutputTokens?: number | undefined;
  /** Web searches that are billed and never reported. */
  readonly unreportedSearches?: number;
}

/** What an answer has produced so far, for its bill. */
export class Produced {
  /** The upstream's own id of the model that answers. */
  model: string | undefined;
  /** Output tokens beyond which no estimate goes: the call was held to them, and a limit of its key holds no more back. */
  readonly #mostOutput: number;
  #reported: Usage | undefined;
  #images = 0;
  /** Since the provider last reported. */
  readonly #said = new SaidText();
  /** In its place, of an answer that was read elsewhere. */
  #told: Said | undefined;
  readonly #unreportedSearches: number;

  constructor({ mostOutputTokens, unreportedSearches = 0 }: ProducedOptions = {}) {
    this.#mostOutput = mostOutputTokens ?? Number.POSITIVE_INFINITY;
    this.#unreportedSearches = unreportedSearches;
  }

  addWhole({ model, usage, choices }: UpstreamCompletion): void {
    this.model = model;
    this.#report(usage);
    for (const { index, message } of choices) this.#say(index, message, usage);
  }

  /** The same as `addWhole` of the answer that this describes. */
  addTold({ model, usage, said, images }: Told): void {
    this.model = model;
    this.#report(usage);
    this.#told = said;
    this.#images += images;
  }

  told(): Told {
    return { model: this.model, usage: this.#reported, said: this.#unreported(), images: this.#images };
  }

  #unreported(): Said {
    return this.#told ?? { ...this.#said.toCount(), audioTokens: this.#said.audioTokens };
  }

  addChunk({ model, usage, choices }: UpstreamChunk): void {
    this.model ??= model;
    this.#report(usage);
    for (const { index, delta } of choices) this.#say(index, delta, usage);
  }

  /** The last report counts; it tells of everything so far. */
  #report(usage: Usage | undefined): void {
    if (usage === undefined) return;
    this.#reported = usage;
    this.#said.clear();
  }

  #say(choice: number, message: CompletionMessage | ChunkDelta, usage: Usage | undefined): void {
    if (usage === undefined) this.#said.add(choice, message);
    if (Array.isArray(message.images)) this.#images += message.images.length;
  }

  /** What an answer that has ended is billed for: what the provider reported, else an estimate of what was asked and said. */
  async usage(estimator: TokenEstimator, request: ChatRequest, mapping: Mapping): Promise<Usage> {
    const usage = this.#reported ?? (await this.#estimate(estimator, request));
    return this.#complete(usage, request, mapping);
  }

  /** The same of an answer whose reader left: what was said since the provider last reported is estimated too. */
  async usageSoFar(estimator: TokenEstimator, request: ChatRequest, mapping: Mapping): Promise<Usage> {
    const reported = this.#reported;
    const since = this.#unreported();
    const { audioTokens } = since;
    if (reported === undefined || (since.texts.length === 0 && audioTokens === 0)) {
      return this.usage(estimator, request, mapping);
    }
    const { completionTokens, rough } = await estimator.estimate(NO_TEXT, since);
    const most = Math.max(reported.completionTokens, this.#mostOutput);
    const usage = {
      ...reported,
      completionTokens: Math.min(reported.completionTokens + completionTokens + audioTokens, most),
      completionAudioTokens: Math.min(reported.completionAudioTokens + audioTokens, most),
      estimated: true,
      rough,
    };
    return this.#complete(usage, request, mapping);
  }

  /** What the call is billed for where nothing may be estimated. */
  reportedUsage(request: ChatRequest, mapping: Mapping): Usage | undefined {
    return this.#reported && this.#complete(this.#reported, request, mapping);
  }

  async #estimate(estimator: TokenEstimator, request: ChatRequest): Promise<Usage> {
    const { texts, imageTokens, audioTokens, videoTokens, otherTokens } = promptContent(request);
    const said = this.#unreported();
    const { promptTokens, completionTokens, rough } = await estimator.estimate({ texts, omittedBytes: 0 }, said);
    const most = this.#mostOutput;
    const madeTokens = Math.min(this.#images * MADE_IMAGE_TOKENS, most);
    const soundTokens = said.audioTokens;
    return {
      ...NO_USAGE,
      promptTokens: promptTokens + imageTokens + audioTokens + videoTokens + otherTokens,
      promptImageTokens: imageTokens,
      promptAudioTokens: audioTokens,
      promptVideoTokens: videoTokens,
      completionTokens: Math.min(completionTokens + madeTokens + soundTokens, most),
      completionAudioTokens: Math.min(soundTokens, most - madeTokens),
      completionImageTokens: madeTokens,
      estimated: true,
      rough,
    };
  }

  /** Adds what no provider reports in tokens: searches, and images where the mapping has a price for each. */
  #complete(usage: Usage, request: ChatRequest, mapping: Mapping): Usage {
    return {
      ...usage,
      webSearches: Math.max(usage.webSearches, this.#unreportedSearches),
      promptImages: hasPrice(mapping, 'image') ? imagesIn(request) : usage.promptImages,
      images: hasPrice(mapping, 'per_image') ? Math.max(usage.images, this.#images) : usage.images,
    };
  }
}

const hasPrice = ({ prices, tiers = [] }: Mapping, name: keyof Prices): boolean =>
  prices[name] !== undefined || tiers.some((tier) => tier.prices[name] !== undefined);
