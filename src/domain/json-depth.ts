const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Where the text that begins at `start`, behind its quote, has its closing quote; the length when it has none. */
function endOfText(json: Uint8Array, start: number): number {
  let at = start;
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at;
}

/**
 * Whether JSON nests objects and arrays deeper than `max` levels. Told from the bytes, before they are parsed and without
 * recursion: parsing ten megabytes of brackets takes a second. Of bytes that are no JSON the answer means nothing.
 */
export function depthExceeds(json: Uint8Array, max: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    const byte = json[at];
    if (byte === QUOTE) at = endOfText(json, at + 1);
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) depth -= 1;
    if (depth > max) return true;
  }
  return false;
}
