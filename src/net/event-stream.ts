import { GrowingBytes } from '../lib/json.ts';
import { MAX_DATA_LINES, MAX_LINES, type Room, SMALL_BYTES, TransportError } from './transport-error.ts';

/** An event whose data is still to be parsed, or of more than 64 KiB: parsed on another thread; undefined if it is no JSON. */
export type StreamEvent = SseEvent | { readonly event?: string; readonly data?: undefined; readonly json: unknown };

/** JSON that another thread has parsed, without its long texts. */
export interface ParsedJson {
  /** Undefined for what is no JSON. */
  readonly json: unknown;
  /** By what stands in their places. */
  readonly longTexts: ReadonlyMap<string, Uint8Array>;
}

/** Resources of the process that a stream's reader may use. */
interface StreamMeans {
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
  /** Long texts of the events read so far. A consumer that stores them gives the bytes back. */
  readonly longTexts: LongTexts;
}

/** Text of this length takes, once it is parsed, no more than a stream takes anyway. */
const SMALL = 8 * 1024;

/**
 * Memory of a parsed text, as a multiple of the text: it takes twice as much as itself, and 20 times when it contains only
 * empty objects.
 */
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

// Ours, and not eventsource-parser (3.1.1, measured on 2026-11-24): that one takes text, so an event of 1 MB that another thread parses
// is decoded and encoded again (1.0 ms of CPU, here 0.25); it makes an Error of each unknown field (2 µs a line, here 0.01), bounds no
// number of lines, checks its bound only between chunks, keeps 12 bytes for each byte of a line in small pieces, and holds back an
// event that ends with two carriage returns. Small events cost as much: 0.22 µs, here 0.21; of many in one chunk 0.08, here 0.12.

/** A server-sent event. `event` is absent when the stream named none. */
export interface SseEvent {
  readonly event?: string;
  readonly data: string;
}

/** An event of more than 64 KiB, whose data nobody has decoded. */
export interface LargeSseEvent {
  readonly event?: string;
  readonly bytes: Buffer;
}

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const BYTE_ORDER_MARK = '\uFEFF';
const NEW_LINE = Buffer.from('\n');

const tooLarge = (): TransportError =>
  new TransportError('too_large', 'an event of the stream is too large', { sent: true });

/** End of the last line of a chunk, its line end included; 0 when no line ends in it. */
function endOfLines(chunk: Buffer): number {
  if (chunk[chunk.length - 1] === LINE_FEED) return chunk.length;
  const end = chunk.lastIndexOf(LINE_FEED) + 1;
  return Math.max(end, chunk.lastIndexOf(CARRIAGE_RETURN) + 1);
}

/** End of the first line of a chunk, its line end left out. */
function endOfFirstLine(chunk: Buffer): number {
  const feed = chunk.indexOf(LINE_FEED);
  const line = feed === -1 ? chunk : chunk.subarray(0, feed);
  const carriageReturn = line.indexOf(CARRIAGE_RETURN);
  return carriageReturn === -1 ? line.length : carriageReturn;
}

/**
 * Incremental parser of `text/event-stream`: bytes in, whole events out. Knows lines and line ends split over chunks, all three
 * line ends, comments, several data lines and a byte order mark. An event that the stream's end cuts off is dropped.
 */
export class SseParser {
  readonly #maxEventBytes: number;
  /** The line that has no end yet. */
  readonly #rest = new GrowingBytes();
  /** A line feed that comes next belongs to the carriage return before it. */
  #afterCarriageReturn = false;
  #isFirst = true;
  #lines = 0;
  #event = '';
  #data: (string | Buffer)[] = [];
  #dataLength = 0;

  /** @param maxEventBytes the longest line, and the most data of one event */
  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  /** Bytes of memory held for the event that has not ended. */
  get heldBytes(): number {
    return this.#rest.capacity + this.#dataLength;
  }

  /** @throws TransportError `too_large` when an event, or the number of lines, exceeds its bound */
  push(chunk: Buffer): (SseEvent | LargeSseEvent)[] {
    const events: (SseEvent | LargeSseEvent)[] = [];
    let bytes = chunk;
    if (this.#afterCarriageReturn && bytes.length > 0) {
      this.#afterCarriageReturn = false;
      if (bytes[0] === LINE_FEED) bytes = bytes.subarray(1);
    }
    const end = endOfLines(bytes);
    if (end > 0) {
      this.#afterCarriageReturn = end === bytes.length && bytes[end - 1] === CARRIAGE_RETURN;
      const lines = end === bytes.length ? bytes : bytes.subarray(0, end);
      this.#readLines(this.#rest.length === 0 ? lines : this.#readLargeLine(lines), events);
    }
    if (end < bytes.length) {
      this.#rest.append(bytes.subarray(end));
      if (this.#rest.length > this.#maxEventBytes) throw tooLarge();
    }
    return events;
  }

  /** Puts what waits before the lines; takes a first line that is too long to be decoded here, and returns those behind it. */
  #readLargeLine(lines: Buffer): Buffer {
    const end = endOfFirstLine(lines);
    if (this.#rest.length + end <= SMALL_BYTES) {
      this.#rest.append(lines);
      return this.#rest.take();
    }
    this.#rest.append(lines.subarray(0, end));
    const rest = this.#rest.take();
    const line = this.#isFirst && rest.toString('utf8', 0, 3) === BYTE_ORDER_MARK ? rest.subarray(3) : rest;
    this.#isFirst = false;
    this.#count(1);
    const field = line.toString('latin1', 0, 'data: '.length);
    if (field.startsWith('data:')) this.#addData(line.subarray(field.endsWith(' ') ? 6 : 5));
    return lines.subarray(lines[end] === CARRIAGE_RETURN && lines[end + 1] === LINE_FEED ? end + 2 : end + 1);
  }

  /** @param bytes whole lines */
  #readLines(bytes: Buffer, events: (SseEvent | LargeSseEvent)[]): void {
    let text = bytes.toString('utf8');
    if (this.#isFirst) {
      this.#isFirst = false;
      if (text.startsWith(BYTE_ORDER_MARK)) text = text.slice(1);
    }
    if (text.includes('\r')) text = text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
    let start = 0;
    let lines = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      lines += 1;
      if (end === start) this.#dispatch(events);
      else this.#line(text, start, end);
      start = end + 1;
    }
    this.#count(lines);
  }

  #line(text: string, start: number, end: number): void {
    const data = fieldValue('data', text, start, end);
    if (data === undefined) this.#event = fieldValue('event', text, start, end) ?? this.#event;
    else this.#addData(data);
  }

  #addData(value: string | Buffer): void {
    this.#data.push(value);
    this.#dataLength += value.length + 1;
    if (this.#dataLength > this.#maxEventBytes || this.#data.length > MAX_DATA_LINES) throw tooLarge();
  }

  #count(lines: number): void {
    this.#lines += lines;
    if (this.#lines > MAX_LINES) throw new TransportError('too_large', 'the stream has too many lines', { sent: true });
  }

  #dispatch(events: (SseEvent | LargeSseEvent)[]): void {
    const event = this.#event;
    const data = this.#data;
    const length = this.#dataLength;
    this.#event = '';
    if (data.length === 0) return;
    this.#data = [];
    this.#dataLength = 0;
    if (length > SMALL_BYTES) {
      events.push({ ...(event === '' ? {} : { event }), bytes: joined(data) });
    } else {
      const text = data.length === 1 ? String(data[0]) : data.join('\n');
      events.push(event === '' ? { data: text } : { event, data: text });
    }
  }
}

/** Value of a field in a line; undefined for a comment or another field. */
function fieldValue(field: string, text: string, start: number, end: number): string | undefined {
  const colon = start + field.length;
  if (!text.startsWith(field, start)) return undefined;
  if (colon === end) return '';
  if (text[colon] !== ':') return undefined;
  return text.slice(text[colon + 1] === ' ' ? colon + 2 : colon + 1, end);
}

/** Lines of data as one, in memory that no one else has. */
function joined(lines: readonly (string | Buffer)[]): Buffer {
  const [first] = lines;
  if (lines.length === 1 && Buffer.isBuffer(first)) return first;
  const bytes = new GrowingBytes();
  for (const [place, line] of lines.entries()) {
    if (place > 0) bytes.append(NEW_LINE);
    bytes.append(typeof line === 'string' ? Buffer.from(line) : line);
  }
  return bytes.take();
}

/** JSON in pieces that are never put together: bytes of it, one after the other. */
export type JsonPieces = readonly Uint8Array[];

/**
 * Long texts of a stream's events (pictures in base64) by what stands in their places: the serving thread neither reads nor
 * writes them, but puts their bytes back into the JSON that the caller gets. They hold nothing that JSON escapes.
 */
export class LongTexts {
  readonly #texts = new Map<string, Uint8Array>();
  readonly #placed = new Set<string>();
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  /** Bytes of the texts. */
  get bytes(): number {
    return this.#bytes;
  }

  add(texts: ReadonlyMap<string, Uint8Array>): void {
    for (const [standIn, bytes] of texts) {
      this.#texts.set(standIn, bytes);
      this.#bytes += bytes.length;
    }
  }

  /** The JSON with each text in its place. */
  putBack(json: string): JsonPieces {
    let pieces: (string | Uint8Array)[] = [json];
    for (const [standIn, bytes] of this.#texts) {
      if (!json.includes(standIn)) continue;
      pieces = pieces.flatMap((piece) => (typeof piece === 'string' ? separated(piece, standIn, bytes) : [piece]));
      this.#placed.add(standIn);
    }
    return pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
  }

  /** All that is said by the events so far is written: texts that have found their places come no more. */
  forgetPlaced(): void {
    for (const standIn of this.#placed) {
      this.#bytes -= this.#texts.get(standIn)?.length ?? 0;
      this.#texts.delete(standIn);
    }
    this.#placed.clear();
  }
}

/** A text's parts with the bytes between them, in place of the separator. */
const separated = (text: string, separator: string, bytes: Uint8Array): (string | Uint8Array)[] =>
  text.split(separator).flatMap((part, place) => (place === 0 ? [part] : [bytes, part]));
