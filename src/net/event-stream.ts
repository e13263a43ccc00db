import { type Room, SMALL_BYTES } from './answer-bounds.ts';
import type { LongTexts } from './long-texts.ts';
import { type LargeSseEvent, type SseEvent, SseParser } from './sse.ts';

/** An event whose data is still to be parsed, or of more than 64 KiB: parsed on another thread; undefined if it is no JSON. */
export type StreamEvent = SseEvent | { readonly event?: string; readonly data?: undefined; readonly json: unknown };

/** JSON that another thread has parsed, without its long texts. */
export interface ParsedJson {
  /** Undefined for what is no JSON. */
  readonly json: unknown;
  /** By what stands in their places. */
  readonly longTexts: ReadonlyMap<string, Uint8Array>;
}

/** What a stream's reader may take of the process. */
export interface StreamMeans {
  /** Bytes of one event. */
  readonly maxEventBytes: number;
  readonly room: Room;
  /** @throws TransportError for what holds too much; ApiError 503 */
  readonly parseLarge: (json: Buffer) => Promise<ParsedJson>;
}

/** A streamed answer, as far as it is read here. */
export interface EventSource {
  readonly chunks: AsyncIterable<Buffer>;
  readonly means: StreamMeans;
  /** Of the events read so far. Whoever writes down what they say puts them back. */
  readonly longTexts: LongTexts;
}

/** Text of this length takes, once it is parsed, no more than a stream takes anyway. */
const SMALL = 8 * 1024;

/** What a text takes once it is parsed: twice as much as itself, and 20 times when it is nothing but empty objects. */
const PARSED_FACTOR = 8;

/** A long event is there as it came, as what another thread made of it, and on its way to the caller. */
const COPIES = 3;

const isSmall = (event: SseEvent | LargeSseEvent): event is SseEvent => 'data' in event && event.data.length <= SMALL;

const END: IteratorResult<readonly StreamEvent[], undefined> = { done: true, value: undefined };

/** The events of a streamed answer for one reader, those of one piece of the body together. Leaving early cancels the exchange. */
export class EventStream implements AsyncIterableIterator<readonly StreamEvent[], undefined> {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #means: StreamMeans;
  readonly #longTexts: LongTexts;
  readonly #parser: SseParser;

  constructor({ chunks, means, longTexts }: EventSource) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#means = means;
    this.#longTexts = longTexts;
    this.#parser = new SseParser(means.maxEventBytes);
  }

  /** @throws TransportError, ApiError 503; the exchange is cancelled then */
  async next(): Promise<IteratorResult<readonly StreamEvent[], undefined>> {
    try {
      for (;;) {
        const { done, value } = await this.#chunks.next();
        if (done === true) return END;
        const events = this.#parser.push(value);
        const { heldBytes } = this.#parser;
        if (heldBytes > SMALL_BYTES) this.#means.room(heldBytes);
        if (events.length === 0) continue;
        return { done: false, value: events.every(isSmall) ? events : await this.#parsed(events) };
      }
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<readonly StreamEvent[], undefined>> {
    await this.#chunks.return?.();
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #parsed(events: readonly (SseEvent | LargeSseEvent)[]): Promise<readonly StreamEvent[]> {
    const parsed: StreamEvent[] = [];
    for (const event of events) {
      if ('data' in event) {
        this.#means.room(PARSED_FACTOR * event.data.length);
        parsed.push(event);
        continue;
      }
      const { bytes, ...name } = event;
      this.#means.room(COPIES * bytes.length + this.#longTexts.bytes);
      const { json, longTexts } = await this.#means.parseLarge(bytes);
      this.#longTexts.add(longTexts);
      parsed.push({ ...name, json });
    }
    return parsed;
  }
}
