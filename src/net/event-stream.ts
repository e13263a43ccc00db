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

/** The parts of a streamed answer that are read here. */
export interface EventSource {
  readonly chunks: AsyncIterable<Buffer>;
  readonly means: StreamMeans;
  /** Of the events read so far. A consumer that stores them gives the bytes back. */
  readonly longTexts: LongTexts;
}

/** Text of this length takes, once it is parsed, no more than a stream takes anyway. */
const SMALL = 8 * 1024;

/** What a text takes once it is parsed: twice as much as itself, and 20 times when it is nothing but empty objects. */
const PARSED_FACTOR = 8;

/** A long event is there as it came, as what another thread made of it, and on its way to the caller. */
const COPIES = 3;

const isSmall = (event: SseEvent | LargeSseEvent): event is SseEvent => 'data' in event && event.data.length <= SMALL;

type Events = readonly StreamEvent[];

/** Makes events of the pieces of a streamed answer. */
export class EventReader {
  readonly #means: StreamMeans;
  readonly #longTexts: LongTexts;
  readonly #parser: SseParser;

  constructor({ means, longTexts }: Pick<EventSource, 'means' | 'longTexts'>) {
    this.#means = means;
    this.#longTexts = longTexts;
    this.#parser = new SseParser(means.maxEventBytes);
  }

  /** The events that end in a piece: at once where none of them is large, as a rule. @throws TransportError, ApiError 503 */
  read(piece: Buffer): Events | Promise<Events> {
    const events = this.#parser.push(piece);
    const { heldBytes } = this.#parser;
    if (heldBytes > SMALL_BYTES) this.#means.room(heldBytes);
    return events.every(isSmall) ? events : this.#parsed(events);
  }

  async #parsed(events: readonly (SseEvent | LargeSseEvent)[]): Promise<Events> {
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

/**
 * The events of a streamed answer for one reader, those of one piece of the body together. Leaving early cancels the exchange.
 * @throws TransportError, ApiError 503; the exchange is cancelled then
 */
export async function* streamEvents(source: EventSource): AsyncGenerator<Events, void, undefined> {
  const reader = new EventReader(source);
  for await (const piece of source.chunks) yield reader.read(piece);
}
