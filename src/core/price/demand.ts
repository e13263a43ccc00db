import type { ChatMessage, ChatRequest, ContentPart, ImageRequest, PolicyInput } from '../../generated/types.ts';
import { googleOptions } from '../../providers/google/options.ts';
import { MAX_SEARCHES } from '../../providers/wire/request-fields.ts';

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
  /** The same where nobody names them and neither the longest answer nor the context of the model is known. */
  readonly defaultMaxOutputTokens: number;
  /** Fewest to which a spend limit may shorten an answer of which the caller named no maximum. */
  readonly minOutputTokens: number;
  /** Of a predicted answer: what is not used of it is charged as output. */
  readonly predictedTokens: number;
  readonly speaks: boolean;
  /** Most web searches; 0: none is asked for. */
  readonly searches: number;
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

/** What some providers take in an image's place: a film, a sound, a document. */
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
  /** Of the body, to be left out of the count of its text. */
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

  /** What was stored at the provider. */
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

/** What a chat asks for. */
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

/** What a request for images asks for. */
export const imageDemand = (request: ImageRequest): Demand => ({
  ...NOTHING_BUT_TEXT,
  action: 'image',
  textTokens: bytesOf(request),
  choices: request.n ?? 1,
});

/** What any moderation asks for: no tokens are charged for it, whatever it judges. */
export const MODERATION_DEMAND: Demand = { ...NOTHING_BUT_TEXT, action: 'moderation', textTokens: 0, choices: 1 };
