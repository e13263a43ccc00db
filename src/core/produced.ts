import type { Mapping, Prices } from '../domain/model.ts';
import { NO_USAGE, type Usage } from '../domain/usage.ts';
import type { ChatRequest, ChunkDelta, CompletionMessage } from '../generated/types.ts';
import type { UpstreamChunk, UpstreamCompletion } from '../providers/adapter.ts';
import type { TextToCount, TokenEstimator } from '../providers/token-estimate.ts';
import { imagesIn, promptContent } from './prompt-content.ts';
import { SaidText } from './said-text.ts';

/** An image of 1024 by 1024 pixels, as Google counts one that it made. */
const MADE_IMAGE_TOKENS = 1290;

const NO_TEXT: TextToCount = { texts: [], omittedBytes: 0 };

/** What an answer has said that matters for its bill; another thread may have read it. */
export interface Told {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  readonly usage: Usage | undefined;
  /** Nothing where the provider reported its usage. */
  readonly said: TextToCount;
  readonly images: number;
}

/** What has come of an answer so far, for its bill. */
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
  #told: TextToCount | undefined;

  constructor(mostOutputTokens = Number.POSITIVE_INFINITY) {
    this.#mostOutput = mostOutputTokens;
  }

  addWhole({ model, usage, choices }: UpstreamCompletion): void {
    this.model = model;
    this.#report(usage);
    for (const { index, message } of choices) this.#say(index, message, usage);
  }

  /** The same as `addWhole` of the answer of which this was told. */
  addTold({ model, usage, said, images }: Told): void {
    this.model = model;
    this.#report(usage);
    this.#told = said;
    this.#images += images;
  }

  told(): Told {
    return { model: this.model, usage: this.#reported, said: this.#toCount(), images: this.#images };
  }

  #toCount(): TextToCount {
    return this.#told ?? this.#said.toCount();
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
    return this.#withImages(usage, request, mapping);
  }

  /** The same of an answer whose reader left: what was said since the provider last reported is estimated too. */
  async usageSoFar(estimator: TokenEstimator, request: ChatRequest, mapping: Mapping): Promise<Usage> {
    const reported = this.#reported;
    const since = this.#toCount();
    if (reported === undefined || since.texts.length === 0) return this.usage(estimator, request, mapping);
    const { completionTokens, rough } = await estimator.estimate(NO_TEXT, since);
    const usage = {
      ...reported,
      completionTokens: Math.max(
        reported.completionTokens,
        Math.min(reported.completionTokens + completionTokens, this.#mostOutput),
      ),
      estimated: true,
      rough,
    };
    return this.#withImages(usage, request, mapping);
  }

  /** What the call is billed for where nothing may be estimated. */
  reportedUsage(request: ChatRequest, mapping: Mapping): Usage | undefined {
    return this.#reported && this.#withImages(this.#reported, request, mapping);
  }

  async #estimate(estimator: TokenEstimator, request: ChatRequest): Promise<Usage> {
    const { texts, imageTokens, audioTokens, videoTokens, otherTokens } = promptContent(request);
    const { promptTokens, completionTokens, rough } = await estimator.estimate(
      { texts, omittedBytes: 0 },
      this.#toCount(),
    );
    const madeTokens = Math.min(this.#images * MADE_IMAGE_TOKENS, this.#mostOutput);
    return {
      ...NO_USAGE,
      promptTokens: promptTokens + imageTokens + audioTokens + videoTokens + otherTokens,
      promptImageTokens: imageTokens,
      promptAudioTokens: audioTokens,
      promptVideoTokens: videoTokens,
      completionTokens: Math.min(completionTokens + madeTokens, this.#mostOutput),
      completionImageTokens: madeTokens,
      estimated: true,
      rough,
    };
  }

  /** Images are told by no provider's tokens; they are counted where the mapping has a price for each. */
  #withImages(usage: Usage, request: ChatRequest, mapping: Mapping): Usage {
    return {
      ...usage,
      promptImages: hasPrice(mapping, 'image') ? imagesIn(request) : usage.promptImages,
      images: hasPrice(mapping, 'per_image') ? Math.max(usage.images, this.#images) : usage.images,
    };
  }
}

const hasPrice = ({ prices, tiers = [] }: Mapping, name: keyof Prices): boolean =>
  prices[name] !== undefined || tiers.some((tier) => tier.prices[name] !== undefined);
