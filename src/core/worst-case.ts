import { type ApiError, invalidRequest } from '../domain/errors.ts';
import type { Bound, Bounds, Reservation } from '../domain/limits.ts';
import type { Mapping } from '../domain/model.ts';
import type { ChatMessage, ChatRequest, ContentPart, ImageRequest } from '../generated/types.ts';
import { googleOptions } from '../providers/google/request.ts';
import { MAX_SEARCHES } from '../providers/wire/fields.ts';
import { boundOf, type Demand, OPERATIONS } from './operations.ts';

/** The most that a mapping charges, for the longest answer. */
export const mostOf = (bound: Bound): bigint => costAt(bound, bound.maxOutputTokens);

const costAt = ({ fixed, perOutputToken, maxOutputTokens }: Bound, tokens: number): bigint =>
  fixed + perOutputToken * BigInt(Math.min(tokens, maxOutputTokens));

/** Output tokens of each choice that an amount pays for; undefined: as many as may come. */
function affordable(bound: Bound, amount: bigint): number | undefined {
  if (mostOf(bound) <= amount) return undefined;
  return Number((amount - bound.fixed) / bound.perOutputToken);
}

/** Longest output of each choice of an answer, so that its cost stays within the reservation. */
export interface OutputLimit {
  readonly tokens: number;
  /** The caller named no maximum, or a larger one. */
  readonly isOurs: boolean;
  /** The limit that pays for no more, though the model could have given more. */
  readonly cutBy: string | undefined;
}

/**
 * The most that a call may cost at each of its candidates, of which there is at least one. The request is measured when that is
 * first asked for: most keys have no limit.
 */
export class CallBounds implements Bounds {
  readonly #candidates: readonly Mapping[];
  readonly #findDemand: () => Demand;
  #demand: Demand | undefined;
  #known: ReadonlyMap<string, Bound> | undefined;

  /** @param candidates with the prices that the call pays */
  constructor(candidates: readonly Mapping[], findDemand: () => Demand) {
    this.#candidates = candidates;
    this.#findDemand = findDemand;
  }

  /** Measures the request now: with a large body that takes long, and no transaction should wait for it. */
  measure(): Demand {
    this.#demand ??= this.#findDemand();
    return this.#demand;
  }

  /** Bounds of candidates with a known price, by their ids. */
  #bounds(): ReadonlyMap<string, Bound> {
    this.#known ??= new Map(
      this.#candidates.flatMap((mapping) => {
        const bound = boundOf(mapping, this.measure());
        return bound === undefined ? [] : [[mapping.id, bound]];
      }),
    );
    return this.#known;
  }

  /** Whether the candidate has a known price. Another may not serve while a limit applies. */
  has({ id }: Mapping): boolean {
    return this.#bounds().has(id);
  }

  /**
   * A caller who named no maximum is served with as much output as their key's limit pays for, but not with less than an answer
   * needs.
   */
  get least(): bigint | ApiError {
    if (this.#bounds().size === 0) return unpricedCall(this.#candidates, this.measure());
    return this.#at(this.#mayShorten() ? this.measure().minOutputTokens : this.#longest());
  }

  within(amount: bigint): Omit<Reservation, 'limit'> {
    if (!this.#mayShorten()) return { amount: this.#at(this.#longest()), maxOutputTokens: null };
    let tokens = this.#longest();
    for (const bound of this.#bounds().values()) tokens = Math.min(tokens, affordable(bound, amount) ?? tokens);
    return { amount: this.#at(tokens), maxOutputTokens: tokens };
  }

  /** The room that a reservation leaves for a candidate's output; undefined where tokens of output cost nothing. */
  outputLimit({ id }: Mapping, reservation: Reservation): OutputLimit | undefined {
    const bound = this.#bounds().get(id);
    if (bound === undefined || bound.maxOutputTokens === 0) return undefined;
    const tokens = Math.min(bound.maxOutputTokens, reservation.maxOutputTokens ?? bound.maxOutputTokens);
    const isOurs = tokens !== this.measure().maxOutputTokens;
    return { tokens, isOurs, cutBy: tokens < bound.maxOutputTokens ? reservation.limit : undefined };
  }

  #mayShorten(): boolean {
    const { action, maxOutputTokens } = this.measure();
    return OPERATIONS[action].canBeShortened && maxOutputTokens === undefined;
  }

  #longest(): number {
    let most = 0;
    for (const { maxOutputTokens } of this.#bounds().values()) most = Math.max(most, maxOutputTokens);
    return most;
  }

  /** The cost of an answer of so many tokens at the most expensive candidate. */
  #at(tokens: number): bigint {
    let most = 0n;
    for (const bound of this.#bounds().values()) {
      const cost = costAt(bound, tokens);
      if (cost > most) most = cost;
    }
    return most;
  }
}

/** The error for a key with a limit when no candidate has a known price: it is not the key's fault. */
function unpricedCall(candidates: readonly Mapping[], { action }: Demand): ApiError {
  const [custom] = candidates.filter((mapping) => mapping.custom);
  const { priceName, modelParam } = OPERATIONS[action];
  const advice =
    custom === undefined
      ? 'Name another model, or ask the operator to state its price (for an upstream: UPSTREAM_<NAME>_PRICES).'
      : `Name another model, or have an administrator state its price (custom-models update ${custom.id} --price).`;
  return invalidRequest(
    `A usage limit applies to this API key, and no ${priceName} of the model is known at any permitted provider: the limit could not be kept. ${advice}`,
    modelParam,
  );
}

/**
 * The most tokens that providers count for one part, and what the README states: an image of any size (GPT-4o mini counts most);
 * a film or a file, of whose length nothing is known; an earlier spoken answer; what a search brings in.
 */
export const ALLOWANCES = {
  image: 50_000,
  film: 1_000_000,
  file: 1_000_000,
  spokenAnswer: 16_384,
  search: 10_000,
};
/**
 * Sound of these formats, by its data: 32 tokens a second, and none takes less than 6 kbit/s. In others, silence may be next to
 * nothing.
 */
const MEASURED_AUDIO = /^(?:wav|mp3)$/i;
const BASE64_PER_AUDIO_TOKEN = 24;
const LEAST_AUDIO = 1000;
/** Instructions that providers put before a request with tools. */
const TOOL_INSTRUCTIONS = 1000;

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value) ?? '');

const isData = (url: string): boolean => /^data:/i.test(url.slice(0, 5));

/** Types that some providers take in an image's place: a film, a sound, a document. */
const NO_IMAGE =
  /\.(?:3gpp?|aac|aiff?|avi|csv|flac|flv|html?|json|m4a|mov|mp3|mp4|mpe?g|oga|ogg|opus|pdf|txt|wav|webm|wmv|xml)$/i;

/** Films, and files that were uploaded to Google: their addresses do not say what they are. */
const NO_IMAGE_HOST =
  /(?:^|\.)(?:youtube\.com|youtube-nocookie\.com|youtu\.be|generativelanguage\.googleapis\.com)\.?$/;

function isImage(url: string): boolean {
  if (isData(url)) return /^data:image\//i.test(url.slice(0, 11));
  // Read as a fetch does: it drops blanks and line ends.
  const parsed = URL.parse(url);
  return !(NO_IMAGE.test(parsed?.pathname ?? url) || NO_IMAGE_HOST.test(parsed?.hostname ?? ''));
}

/** Sums what is no text. */
class Media {
  /** Bytes of media in the body, left out of the count of its text. */
  bytes = 0;
  tokens = 0;
  images = 0;
  hasAudio = false;
  hasPictures = false;

  add(part: ContentPart): void {
    if (part.type === 'text' || part.type === 'refusal') return;
    if (part.type === 'image_url') this.#addImage(part.image_url?.url ?? '');
    else if (part.type === 'input_audio')
      this.#addAudio(part.input_audio?.data ?? '', part.input_audio?.format ?? 'wav');
    else if (part.type === 'video_url') this.#addFilm(part.video_url?.url ?? '');
    else this.#addFile(part.file?.file_data ?? '');
  }

  addSpokenAnswer(): void {
    this.hasAudio = true;
    this.tokens += ALLOWANCES.spokenAnswer;
  }

  /** Adds content that is stored at the provider. */
  addCached(): void {
    this.#addFile('');
  }

  #addImage(url: string): void {
    this.images += 1;
    if (!isImage(url)) {
      this.#addFile(url);
      return;
    }
    this.hasPictures = true;
    this.tokens += ALLOWANCES.image;
    if (isData(url)) this.bytes += bytesOf(url);
  }

  #addAudio(data: string, format: string): void {
    if (!MEASURED_AUDIO.test(format)) {
      this.#addFile(data);
      return;
    }
    this.hasAudio = true;
    this.tokens += Math.max(LEAST_AUDIO, Math.ceil(data.length / BASE64_PER_AUDIO_TOKEN));
    this.bytes += bytesOf(data);
  }

  #addFilm(url: string): void {
    this.hasAudio = true;
    this.hasPictures = true;
    this.tokens += ALLOWANCES.film;
    if (isData(url)) this.bytes += bytesOf(url);
  }

  /** Anything may be in it. Its pages may be counted as pictures. */
  #addFile(data: string): void {
    this.hasAudio = true;
    this.hasPictures = true;
    this.tokens += ALLOWANCES.file;
    this.bytes += bytesOf(data);
  }
}

function mediaOf(request: ChatRequest): Media {
  const media = new Media();
  if (googleOptions(request).body.cachedContent !== undefined) media.addCached();
  for (const message of request.messages) {
    const { content, audio } = message;
    if (audio !== undefined && audio !== null) media.addSpokenAnswer();
    if (Array.isArray(content)) for (const part of content) media.add(part);
    for (const url of returnedImages(message)) media.add({ type: 'image_url', image_url: { url } });
  }
  return media;
}

/** Images of an earlier answer, where our answers have them. */
const returnedImages = ({ images }: ChatMessage): string[] =>
  (images ?? []).map((image) => image.image_url?.url).filter((url) => url !== undefined);

function searchesOf({ tools, web_search_options: options }: ChatRequest): number {
  const searching = (tools ?? []).filter(({ type }) => type !== 'function' && type !== 'custom');
  if (searching.length === 0 && (options === undefined || options === null)) return 0;
  return Math.max(MAX_SEARCHES, ...searching.map(({ max_uses: uses }) => uses ?? 0));
}

/** The demand of a chat. */
export function chatDemand(request: ChatRequest, defaultMaxOutputTokens: number, minOutputTokens: number): Demand {
  const media = mediaOf(request);
  const searches = searchesOf(request);
  const tools = request.tools ?? [];
  const instructions = tools.length > 0 || (request.functions ?? []).length > 0 ? TOOL_INSTRUCTIONS : 0;
  return {
    action: 'chat',
    textTokens: bytesOf(request) - media.bytes + instructions,
    mediaTokens: media.tokens + searches * ALLOWANCES.search,
    hasAudio: media.hasAudio,
    hasPictures: media.hasPictures,
    promptImages: media.images,
    choices: request.n ?? 1,
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    defaultMaxOutputTokens,
    minOutputTokens,
    predictedTokens: request.prediction === undefined || request.prediction === null ? 0 : bytesOf(request.prediction),
    speaks: request.modalities?.includes('audio') === true || (request.audio !== undefined && request.audio !== null),
    searches,
  };
}

const NOTHING_BUT_TEXT = {
  mediaTokens: 0,
  hasAudio: false,
  hasPictures: false,
  promptImages: 0,
  maxOutputTokens: undefined,
  defaultMaxOutputTokens: 0,
  minOutputTokens: 0,
  predictedTokens: 0,
  speaks: false,
  searches: 0,
} as const;

/** The demand of a request for images. */
export const imageDemand = (request: ImageRequest): Demand => ({
  ...NOTHING_BUT_TEXT,
  action: 'image',
  textTokens: bytesOf(request),
  choices: request.n ?? 1,
});

/** The demand of any moderation: no tokens are charged for it, whatever it judges. */
export const MODERATION_DEMAND: Demand = { ...NOTHING_BUT_TEXT, action: 'moderation', textTokens: 0, choices: 1 };

/** Content of a request that a model reads, for an estimate. */
interface PromptContent {
  /** Each counted by itself. */
  readonly texts: readonly string[];
  /** Allowances for what is no text. */
  readonly imageTokens: number;
  readonly audioTokens: number;
  readonly videoTokens: number;
  /** Allowances for files, and what the form of a chat adds. */
  readonly otherTokens: number;
}

/** An image of 1024 by 1024 pixels, as OpenAI counts it; half a minute of sound and of film, and six pages, as Google does. */
const MEDIA_TOKENS = { image: 765, audio: 960, video: 7890, file: 1548 };

/** Tokens that OpenAI's format adds to a message, to a name in it, and once for the answer that follows. */
const FORM = { message: 4, name: 1, request: 3 };

const partsOf = ({ content }: ChatMessage): readonly ContentPart[] => (Array.isArray(content) ? content : []);

/** The images in a request's messages. */
export const imagesIn = ({ messages }: ChatRequest): number =>
  messages.reduce((sum, message) => sum + partsOf(message).filter(({ type }) => type === 'image_url').length, 0);

/** Everything of a request that a model reads: messages, the tools it may call, the form that the answer must have. */
export function promptContent(request: ChatRequest): PromptContent {
  const texts: string[] = [];
  const media = { imageTokens: 0, audioTokens: 0, videoTokens: 0 };
  let otherTokens = FORM.request;
  for (const message of request.messages) {
    otherTokens += FORM.message;
    if (typeof message.name === 'string') otherTokens += FORM.name;
    texts.push(...messageTexts(message));
    for (const part of partsOf(message)) {
      if (part.type === 'text') texts.push(part.text ?? '');
      else if (part.type === 'refusal') texts.push(part.refusal ?? '');
      else if (part.type === 'image_url') media.imageTokens += MEDIA_TOKENS.image;
      else if (part.type === 'input_audio') media.audioTokens += MEDIA_TOKENS.audio;
      else if (part.type === 'video_url') media.videoTokens += MEDIA_TOKENS.video;
      else otherTokens += MEDIA_TOKENS.file;
    }
  }
  for (const described of [request.tools, request.functions, request.response_format]) {
    if (described !== undefined && described !== null) texts.push(JSON.stringify(described));
  }
  return { texts, ...media, otherTokens };
}

function messageTexts({
  content,
  name,
  reasoning,
  refusal,
  tool_calls: calls,
  function_call: call,
}: ChatMessage): string[] {
  const texts = [content, name, reasoning, refusal, call?.name, call?.arguments];
  for (const { function: called, custom } of calls ?? []) {
    texts.push(called?.name, called?.arguments, custom?.name, custom?.input);
  }
  return texts.filter((text) => typeof text === 'string');
}
