import { StringDecoder } from 'node:string_decoder';
import { TransportError } from './transport-error.ts';

/** A server-sent event. `event` is absent when the stream named none. */
export interface SseEvent {
  readonly event?: string;
  readonly data: string;
}

/**
 * Incremental parser of `text/event-stream`: bytes in, whole events out. Knows characters and line ends split over chunks,
 * all three line ends, comments, several data lines and a byte order mark. An event that the stream's end cuts off is dropped.
 */
export class SseParser {
  readonly #maxEventLength: number;
  readonly #decoder = new StringDecoder('utf8');
  /** Pieces of a line that has no end yet; joined once, so that a long line costs linear time. */
  #partial: string[] = [];
  #partialLength = 0;
  #carriageReturn = false;
  #first = true;
  #event = '';
  #data: string[] = [];
  #dataLength = 0;

  /** @param maxEventLength the longest line, and the most data of one event, in UTF-16 units */
  constructor(maxEventLength: number) {
    this.#maxEventLength = maxEventLength;
  }

  /** @throws TransportError `too_large` when an event exceeds the bound */
  push(chunk: Buffer): SseEvent[] {
    const text = this.#normalise(this.#decoder.write(chunk));
    const events: SseEvent[] = [];
    let start = 0;
    for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
      const event = this.#line(this.#complete(text.slice(start, end)));
      if (event !== undefined) events.push(event);
      start = end + 1;
    }
    if (start < text.length) {
      this.#partial.push(text.slice(start));
      this.#partialLength += text.length - start;
      this.#bound(this.#partialLength);
    }
    return events;
  }

  /** Line ends become `\n`; a carriage return at a chunk's end waits, for it may be half of one. */
  #normalise(decoded: string): string {
    let text = decoded;
    if (text === '') return text;
    if (this.#first) {
      this.#first = false;
      if (text.charCodeAt(0) === 0xfeff) text = text.slice(1);
    }
    if (this.#carriageReturn) {
      text = `\r${text}`;
      this.#carriageReturn = false;
    }
    if (!text.includes('\r')) return text;
    if (text.endsWith('\r')) {
      this.#carriageReturn = true;
      text = text.slice(0, -1);
    }
    return text.replaceAll('\r\n', '\n').replaceAll('\r', '\n');
  }

  #complete(end: string): string {
    if (this.#partial.length === 0) return end;
    this.#partial.push(end);
    const line = this.#partial.join('');
    this.#partial = [];
    this.#partialLength = 0;
    return line;
  }

  #line(line: string): SseEvent | undefined {
    if (line === '') return this.#dispatch();
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'event') {
      this.#event = value;
    } else if (field === 'data') {
      this.#data.push(value);
      this.#dataLength += value.length + 1;
      this.#bound(this.#dataLength);
    }
    return undefined;
  }

  #dispatch(): SseEvent | undefined {
    const event = this.#event;
    const data = this.#data;
    this.#event = '';
    if (data.length === 0) return undefined;
    this.#data = [];
    this.#dataLength = 0;
    const text = data.length === 1 ? (data[0] ?? '') : data.join('\n');
    return event === '' ? { data: text } : { event, data: text };
  }

  #bound(length: number): void {
    if (length > this.#maxEventLength)
      throw new TransportError('too_large', 'an event of the stream is too large', { sent: true });
  }
}
