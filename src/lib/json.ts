const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** The most that JSON may hold before it is parsed. */
export interface JsonBounds {
  /** Levels of objects and lists in each other. */
  readonly depth: number;
  /** Values in all: objects, lists, texts, numbers, literals. */
  readonly values: number;
  /** Fields of one object. */
  readonly fields: number;
}

/** Size of JSON, up to the bound that it exceeds first, if any. */
export interface JsonSize {
  readonly values: number;
  /** Fields of all objects together. */
  readonly fields: number;
  readonly exceeded: keyof JsonBounds | undefined;
}

/** Bytes of a text that are looked at one by one, before a search that costs as much as all of them to set up. */
const LOOKED_AT = 128;

/** True if the byte at `at` stands behind an odd number of backslashes, none of them before `start`. */
function isEscaped(json: Uint8Array, at: number, start: number): boolean {
  let first = at;
  while (first > start && json[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** The next closing quote, or a place before it; the length when there is none. */
function nearQuote(json: Uint8Array, start: number): number {
  const quote = json.indexOf(QUOTE, start);
  if (quote === -1) return json.length;
  return isEscaped(json, quote, start) ? quote + 1 : quote;
}

/**
 * Position of the closing quote of the text that begins at `start`, after its opening quote; at least the length when it has
 * none.
 */
function endOfText(json: Uint8Array, start: number): number {
  let at = start;
  let stop = start + LOOKED_AT;
  while (at < json.length && json[at] !== QUOTE) {
    at += json[at] === BACKSLASH ? 2 : 1;
    if (at < stop) continue;
    at = nearQuote(json, at);
    stop = at + LOOKED_AT;
  }
  return at;
}

/** True if the next byte that is no blank closes a list or an object. */
function closesAt(json: Uint8Array, start: number): boolean {
  let at = start;
  while (json[at] === 0x20 || json[at] === 0x0a || json[at] === 0x0d || json[at] === 0x09) at += 1;
  return json[at] === CLOSE_LIST || json[at] === CLOSE_OBJECT;
}

/** By level, the fields of the object that is open there. One for all: a reading does not wait. */
let fieldsAt = new Uint32Array(0);

/**
 * Counts what JSON holds, in one pass over its bytes and without recursion, before it is parsed: parsing takes seconds and gigabytes
 * where a few megabytes hold millions of values. Of bytes that are no JSON the result means nothing.
 */
export function measureJson(json: Uint8Array, bounds: JsonBounds): JsonSize {
  if (fieldsAt.length <= bounds.depth) fieldsAt = new Uint32Array(bounds.depth + 1);
  const counted = fieldsAt;
  let depth = 0;
  let values = 1;
  let fields = 0;
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case QUOTE:
        at = endOfText(json, at + 1);
        break;
      case COMMA:
        values += 1;
        if (values > bounds.values) return { values, fields, exceeded: 'values' };
        break;
      case COLON:
        fields += 1;
        counted[depth] = (counted[depth] ?? 0) + 1;
        if ((counted[depth] ?? 0) > bounds.fields) return { values, fields, exceeded: 'fields' };
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        depth += 1;
        if (depth > bounds.depth) return { values, fields, exceeded: 'depth' };
        counted[depth] = 0;
        if (!closesAt(json, at + 1)) values += 1;
        if (values > bounds.values) return { values, fields, exceeded: 'values' };
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT:
        depth -= 1;
        break;
    }
  }
  return { values, fields, exceeded: undefined };
}

/** The first bound that JSON exceeds; see `measureJson`. */
export const exceededBound = (json: Uint8Array, bounds: JsonBounds): keyof JsonBounds | undefined =>
  measureJson(json, bounds).exceeded;

const MIN_CAPACITY = 256;
const NOTHING = Buffer.alloc(0);

/**
 * Bytes that come in pieces, in one buffer whatever the pieces are: a list of a million small ones takes a hundred times their bytes,
 * and each keeps the block alive in which it was read.
 */
export class GrowingBytes {
  #bytes = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#bytes.length;
  }

  append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#bytes.length) this.#grow(Math.max(MIN_CAPACITY, 2 * this.#bytes.length, needed));
    this.#bytes.set(chunk, this.#length);
    this.#length = needed;
  }

  /** All that was appended, without a copy; what is appended next begins again. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return taken;
  }

  #grow(capacity: number): void {
    // Slow: out of the pool, a few bytes would keep a whole block of it alive.
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
