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

/** What JSON holds, as far as it was read: up to the bound that it exceeds first, if any. */
export interface JsonSize {
  readonly values: number;
  /** Of all objects together. */
  readonly fields: number;
  readonly exceeded: keyof JsonBounds | undefined;
}

/** Bytes of a text that are looked at one by one: most texts are shorter, and a search costs as much as it takes to set up. */
const LOOKED_AT = 48;

/** True if the byte at `at` stands behind an odd number of backslashes, none of them before `start`. */
function isEscaped(json: Uint8Array, at: number, start: number): boolean {
  let first = at;
  while (first > start && json[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
}

/** Where the text that begins at `start`, behind its quote, has its closing quote; the length when it has none. */
function endOfText(json: Uint8Array, start: number): number {
  let at = start;
  for (;;) {
    const stop = Math.min(at + LOOKED_AT, json.length);
    while (at < stop) {
      const byte = json[at];
      if (byte === QUOTE) return at;
      at += byte === BACKSLASH ? 2 : 1;
    }
    const quote = json.indexOf(QUOTE, at);
    if (quote === -1) return json.length;
    if (!isEscaped(json, quote, at)) return quote;
    at = quote + 1;
  }
}

/** The next byte that is no blank. */
function afterBlanks(json: Uint8Array, start: number): number | undefined {
  let at = start;
  while (json[at] === 0x20 || json[at] === 0x0a || json[at] === 0x0d || json[at] === 0x09) at += 1;
  return json[at];
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
  let [depth, values, fields] = [0, 1, 0];
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) {
      at = endOfText(json, at + 1);
    } else if (byte === COMMA) {
      values += 1;
      if (values > bounds.values) return { values, fields, exceeded: 'values' };
    } else if (byte === COLON) {
      fields += 1;
      counted[depth] = (counted[depth] ?? 0) + 1;
      if ((counted[depth] ?? 0) > bounds.fields) return { values, fields, exceeded: 'fields' };
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      depth += 1;
      if (depth > bounds.depth) return { values, fields, exceeded: 'depth' };
      counted[depth] = 0;
      if (afterBlanks(json, at + 1) !== (byte === OPEN_LIST ? CLOSE_LIST : CLOSE_OBJECT)) values += 1;
      if (values > bounds.values) return { values, fields, exceeded: 'values' };
    } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      depth -= 1;
    }
  }
  return { values, fields, exceeded: undefined };
}

/** The first bound that JSON exceeds; see `measureJson`. */
export const exceededBound = (json: Uint8Array, bounds: JsonBounds): keyof JsonBounds | undefined =>
  measureJson(json, bounds).exceeded;
