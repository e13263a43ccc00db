import { hash } from 'node:crypto';

/** Characters of a piece: at least and at most; on average a thousand more than the least. */
const LEAST = 256;
const MOST = 8192;
/** Of the rolling sum's 32 bits: where the first ten are zero, which is once in 1024 characters, a piece ends. */
const IGNORED_BITS = 22;

/** A random number for each of 256 characters. */
const GEAR = Int32Array.from({ length: 256 }, (_, code) => hash('sha256', `gear ${code}`, 'buffer').readInt32BE());

/**
 * Cuts a text where its own last 32 characters say so, and not at fixed places: after a change all pieces but those that it
 * touches are the same as before.
 */
export function cutText(text: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  let sum = 0;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    sum = ((sum << 1) + (GEAR[code & 255] ?? 0)) | 0;
    const length = index + 1 - start;
    const ends = length >= LEAST && (sum >>> IGNORED_BITS === 0 || length >= MOST);
    // The two halves of a character stay together.
    if (!ends || (code & 0xfc00) === 0xd800) continue;
    pieces.push(text.slice(start, index + 1));
    start = index + 1;
  }
  if (start < text.length) pieces.push(text.slice(start));
  return pieces;
}
