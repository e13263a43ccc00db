/** How much JSON may hold before it is parsed. */
export interface JsonBounds {
  /** Levels of objects and lists. */
  readonly depth: number;
  /** Objects, lists, texts, numbers and words in all. */
  readonly values: number;
  /** Fields of one object. */
  readonly fields: number;
}

const BLANK = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Where the text that begins at `start`, behind its quote, has its closing quote; the length when it has none. */
function endOfText(json: Uint8Array, start: number): number {
  for (let end = json.indexOf(QUOTE, start); end !== -1; end = json.indexOf(QUOTE, end + 1)) {
    let backslashes = 0;
    while (json[end - 1 - backslashes] === BACKSLASH) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return json.length;
}

/**
 * The first bound that JSON exceeds; undefined when it exceeds none. Told from the bytes, before they are parsed and without
 * recursion: parsing five million empty objects takes seconds and a gigabyte. Of bytes that are no JSON the answer means nothing.
 */
export function exceededBound(json: Uint8Array, { depth, values, fields }: JsonBounds): keyof JsonBounds | undefined {
  const fieldsAt = new Uint32Array(depth + 1);
  let level = 0;
  let seen = 1;
  let isOpened = false;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at] ?? 0;
    if (byte <= BLANK) continue;
    if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      level = Math.max(0, level - 1);
      isOpened = false;
      continue;
    }
    // The first value of a list or an object, and one after each comma.
    if (isOpened || byte === COMMA) seen += 1;
    if (seen > values) return 'values';
    isOpened = false;
    if (byte === QUOTE) {
      at = endOfText(json, at + 1);
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
      level += 1;
      if (level > depth) return 'depth';
      fieldsAt[level] = 0;
      isOpened = true;
    } else if (byte === COLON) {
      const known = (fieldsAt[level] ?? 0) + 1;
      if (known > fields) return 'fields';
      fieldsAt[level] = known;
    }
  }
  return undefined;
}
