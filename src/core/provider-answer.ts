import type { Mapping, Prices } from '../domain/model.ts';
import { NO_USAGE, type Usage } from '../domain/usage.ts';
import type { ChatRequest, ChunkChoice, ChunkDelta, CompletionMessage } from '../generated/types.ts';
import { entryOf } from '../lib/text.ts';
import type { JsonPieces, LongTexts } from '../net/event-stream.ts';
import type { GatheredResponse } from '../net/exchange.ts';
import type { TextToCount, TokenEstimator } from '../providers/tokens/token-estimate.ts';
import type {
  Adapter,
  ImageCall,
  ModerationCall,
  UpstreamChunk,
  UpstreamCompletion,
  UpstreamImage,
  UpstreamImages,
  WholeTranslation,
} from '../providers/wire/adapter.ts';
import { paidFor, parseJson, record } from '../providers/wire/fields.ts';
import { imagesIn, promptContent } from './worst-case.ts';

/** The parts of a request that its answer is read by. */
export type AnswerKind =
  | { readonly operation: 'chat' }
  | { readonly operation: 'image'; readonly call: ImageCall }
  | { readonly operation: 'moderation'; readonly call: ModerationCall };

/** A whole answer, read: what it is billed by, and the part of it that the caller gets as the provider said it. */
export interface ReadAnswer<Json extends ProviderJson = ProviderJson> extends AnswerContent {
  /** One, but for the images of a stream: one for each. */
  readonly json: readonly [Json, ...Json[]];
}

const NOTHING_SAID = { texts: [], omittedBytes: 0, audioTokens: 0 };

/**
 * Reads a 2xx answer. Pure, so that any thread can do it.
 * @param secret what the request carried
 * @throws UpstreamError with what the provider reported for an answer that cannot be used
 */
export const readAnswer = (
  adapter: Adapter,
  kind: AnswerKind,
  response: GatheredResponse,
  secret: string | undefined,
): ReadAnswer<string> =>
  paidFor(
    () => (kind.operation === 'moderation' ? undefined : adapter.reportedUsage(parseJson(response.text))),
    () => readUsable(adapter, kind, response, secret),
  );

function readUsable(
  adapter: Adapter,
  kind: AnswerKind,
  response: GatheredResponse,
  secret: string | undefined,
): ReadAnswer<string> {
  switch (kind.operation) {
    case 'chat': {
      const completion = adapter.parseResponse(response, secret);
      const produced = new Produced();
      produced.addWhole(completion);
      const { fields, choices } = completion;
      for (const { message } of choices) nameThoughts(message);
      return { ...produced.told(), json: [JSON.stringify({ ...fields, choices })] };
    }
    case 'image': {
      return madeImages(parse(adapter.images, response, kind.call, secret), kind.call.request.stream === true);
    }
    case 'moderation': {
      const { model, results } = parse(adapter.moderations, response, kind.call, secret);
      const json = JSON.stringify({ results });
      return { model, usage: undefined, said: NOTHING_SAID, images: 0, json: [json] };
    }
  }
}

function parse<Call, Answer>(
  translation: WholeTranslation<Call, Answer> | undefined,
  response: GatheredResponse,
  call: Call,
  secret: string | undefined,
): Answer {
  if (translation === undefined) throw new Error('an answer came to a request that the adapter cannot make');
  return translation.parseResponse(response, call, secret);
}

/** @param apart the caller gets each image by itself */
export function madeImages({ model, usage, images, fields }: UpstreamImages, apart: boolean): ReadAnswer<string> {
  const [first = {}, ...others] = images.map(imageItem);
  const { type, created_at, ...kept } = fields; // The gateway's own in events.
  const write = (item: object): string => JSON.stringify({ ...kept, ...item });
  const json: ReadAnswer<string>['json'] = apart
    ? [write(first), ...others.map(write)]
    : [JSON.stringify({ ...fields, data: [first, ...others] })];
  return { model, usage, said: NOTHING_SAID, images: images.length, json };
}

const imageItem = ({ base64, url, revisedPrompt }: UpstreamImage): object => ({
  ...(base64 === undefined ? {} : { b64_json: base64 }),
  ...(url === undefined ? {} : { url }),
  ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
});

/** A provider's answer, as the JSON of an object with at least one field, none of them the gateway's: bytes where it is large. */
export type ProviderJson = string | Uint8Array;

/** JSON, in pieces where it is large. */
export type JsonText = string | JsonPieces;

/** An answer, or an event of one, of which a provider's part is neither parsed nor written again. */
export class WrittenAnswer<Ours extends object> {
  readonly ours: Ours;
  readonly #theirs: ProviderJson | undefined;
  readonly #longTexts: LongTexts | undefined;

  /**
   * @param ours fields of the gateway's
   * @param theirs the provider's; undefined: they are in `ours`
   * @param longTexts what stands for long texts in either
   */
  constructor(ours: Ours, theirs: ProviderJson | undefined, longTexts?: LongTexts) {
    this.ours = ours;
    this.#theirs = theirs;
    this.#longTexts = longTexts;
  }

  /** The JSON of one object that has the fields of both. @param ours the gateway's fields as this caller wants them */
  json(ours: object): JsonText {
    const text = JSON.stringify(ours);
    const theirs = this.#theirs;
    if (theirs === undefined) return this.#put(text);
    const head = `${text.slice(0, -1)},`;
    return typeof theirs === 'string' ? this.#put(head + theirs.slice(1)) : [Buffer.from(head), theirs.subarray(1)];
  }

  #put(text: string): JsonText {
    return this.#longTexts === undefined || this.#longTexts.isEmpty ? text : this.#longTexts.putBack(text);
  }
}

/** An image of 1024 by 1024 pixels, as Google counts one that it made. */
const MADE_IMAGE_TOKENS = 1290;

const NO_TEXT: TextToCount = { texts: [], omittedBytes: 0 };

/** Content to be estimated: text, and sound by its length. */
interface CountedText extends TextToCount {
  readonly audioTokens: number;
}

/** Content of an answer that matters for its bill; another thread may have read it. */
interface AnswerContent {
  /** The upstream's own id of the model that answered. */
  readonly model: string | undefined;
  readonly usage: Usage | undefined;
  /** Nothing where the provider reported its usage. */
  readonly said: CountedText;
  readonly images: number;
}

interface ProducedOptions {
  /** Tokens of output that the call was held to, over all choices; absent: it was not. */
  readonly mostOutputTokens?: number | undefined;
  /** Web searches that are billed and never reported. */
  readonly unreportedSearches?: number;
}

/** The content that an answer has produced so far, for its bill. */
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
  #told: CountedText | undefined;
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

  /** Adds an answer as `addWhole` does, by its description. */
  addTold({ model, usage, said, images }: AnswerContent): void {
    this.model = model;
    this.#report(usage);
    this.#told = said;
    this.#images += images;
  }

  told(): AnswerContent {
    return { model: this.model, usage: this.#reported, said: this.#unreported(), images: this.#images };
  }

  #unreported(): CountedText {
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

  /** The usage that bills an ended answer: the provider's report, otherwise an estimate of the prompt and the answer. */
  async usage(estimator: TokenEstimator, request: ChatRequest, mapping: Mapping): Promise<Usage> {
    const usage = this.#reported ?? (await this.#estimate(estimator, request));
    return this.#complete(usage, request, mapping);
  }

  /** The usage of an answer whose reader left: content since the provider's last report is estimated too. */
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

  /** The usage that bills the call where nothing may be estimated. */
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

/** Bytes kept of one answer for an estimate: 500 streams at once hold at most 32 MB. Of the rest, only the size is known. */
const MAX_KEPT_BYTES = 64 * 1024;

/** Fields of an answer that are not output: our marks and the provider's, and pictures, which are counted separately. */
const NO_OUTPUT: ReadonlySet<string> = new Set([
  'expires_at',
  'format',
  'id',
  'images',
  'index',
  'object',
  'role',
  'signature',
  'type',
]);

/** Base64 of sound that a provider counts as one token: 50 ms, between what compressed and plain sound take. */
const BASE64_PER_AUDIO_TOKEN = 800;

/** Thoughts come under several names at once: each text is counted once. */
const isThought = (name: string): boolean => name.startsWith('reasoning') || name.startsWith('thinking');

/** Text kept of an answer, from any field: as bytes, since a million small strings are not small. */
export class SaidText {
  readonly #choices = new Map<number, GrowingText>();
  #room = MAX_KEPT_BYTES;
  #omittedBytes = 0;
  #base64 = 0;

  /** A message, or a piece of one; pieces of one choice belong together. */
  add(choice: number, message: CompletionMessage | ChunkDelta): void {
    const fields = record(message);
    let thoughts: Set<string> | undefined;
    for (const name in fields) {
      const value = entryOf(fields, name);
      if (value === null || value === '' || NO_OUTPUT.has(name)) continue;
      if (isThought(name)) {
        thoughts ??= new Set();
        this.#walk(choice, value, thoughts);
      } else if (name === 'audio') this.#addSound(choice, value);
      else this.#walk(choice, value, undefined);
    }
  }

  /** @param counted texts that are not to be counted again */
  #walk(choice: number, value: unknown, counted: Set<string> | undefined): void {
    if (typeof value === 'string') {
      if (counted?.has(value) !== true) this.#keep(choice, value);
      counted?.add(value);
    } else if (Array.isArray(value)) {
      for (const item of value) this.#walk(choice, item, counted);
    } else if (typeof value === 'object') {
      const fields = record(value);
      for (const name in fields) if (!NO_OUTPUT.has(name)) this.#walk(choice, entryOf(fields, name), counted);
    }
  }

  /** Speech: its transcript is text, its sound is not. */
  #addSound(choice: number, value: unknown): void {
    const { data, ...rest } = record(value);
    if (typeof data === 'string') this.#base64 += data.length;
    this.#walk(choice, rest, undefined);
  }

  #keep(choice: number, text: string): void {
    if (text === '') return;
    const bytes = Buffer.byteLength(text);
    const kept = this.#room === 0 ? 0 : this.#choice(choice).append(text, Math.min(bytes, this.#room));
    this.#omittedBytes += bytes - kept;
    // Text after a gap is not kept: a choice's text is a beginning without gaps.
    this.#room = kept < bytes ? 0 : this.#room - kept;
  }

  /** Tokens of the sound so far, by its length. */
  get audioTokens(): number {
    return Math.ceil(this.#base64 / BASE64_PER_AUDIO_TOKEN);
  }

  #choice(index: number): GrowingText {
    let text = this.#choices.get(index);
    if (text === undefined) {
      text = new GrowingText();
      this.#choices.set(index, text);
    }
    return text;
  }

  clear(): void {
    this.#choices.clear();
    this.#room = MAX_KEPT_BYTES;
    this.#omittedBytes = 0;
    this.#base64 = 0;
  }

  toCount(): TextToCount {
    return { texts: [...this.#choices.values()].map(String), omittedBytes: this.#omittedBytes };
  }
}

const MIN_CAPACITY = 256;

class GrowingText {
  #bytes = Buffer.alloc(0);
  #length = 0;

  /** Appends what fits of a text into so many bytes, in whole characters; returns how many bytes that took. */
  append(text: string, maxBytes: number): number {
    const needed = this.#length + maxBytes;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(MIN_CAPACITY, 2 * this.#bytes.length, needed));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    const written = this.#bytes.write(text, this.#length, maxBytes);
    this.#length += written;
    return written;
  }

  toString(): string {
    return this.#bytes.toString('utf8', 0, this.#length);
  }
}

/**
 * A chunk as clients read it, who look at the first choice of a chunk and the first tool call of a delta only: one choice in each
 * piece, and at most one tool call (src/core/README.md, "stream deltas"). Most chunks are one piece already.
 */
export function chunkPieces(chunk: UpstreamChunk): readonly UpstreamChunk[] {
  const { choices } = chunk;
  const [first] = choices;
  if (choices.length === 1 && first !== undefined && callsIn(first) <= 1) return [chunk];
  return choices.flatMap(choicePieces).map((choice) => ({ ...chunk, choices: [choice] }));
}

const callsIn = ({ delta }: ChunkChoice): number => delta.tool_calls?.length ?? 0;

/** The first piece has all that is said next to the calls; the last one ends the choice, if anything does. */
function choicePieces(choice: ChunkChoice): readonly ChunkChoice[] {
  const { delta, index, finish_reason: end } = choice;
  const [call, ...others] = delta.tool_calls ?? [];
  if (call === undefined || others.length === 0) return [choice];
  const pieces: ChunkChoice[] = [
    { ...choice, delta: { ...delta, tool_calls: [call] }, finish_reason: null },
    ...others.map((other): ChunkChoice => ({ index, delta: { tool_calls: [other] }, finish_reason: null })),
  ];
  return pieces.with(-1, { ...(pieces.at(-1) ?? choice), finish_reason: end });
}

/** Thoughts under both names that clients read, `reasoning` and `reasoning_content`; in place. */
export function nameThoughts(said: Thoughtful): void {
  if (typeof said.reasoning === 'string') said.reasoning_content ??= said.reasoning;
}

type Thoughtful = Pick<ChunkDelta, 'reasoning' | 'reasoning_content'>;
