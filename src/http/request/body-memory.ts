import { isAscii } from 'node:buffer';
import type { JsonSize } from '../../lib/json-bounds.ts';

/**
 * Bytes of memory, measured on V8 with hostile JSON: an empty object in a list takes 68; a field takes 10 in an object of usual form,
 * 200 in one whose names are like no other's, 490 where the name is a number such as "49".
 */
const BYTES_OF_VALUE = 72;
const BYTES_OF_FIELD = 420;

/** Smaller bodies are not worth a look at their characters. */
const SMALL = 4 * 1024;

/** One character that is not Latin makes a text take two bytes for each; its escape may be all of it that is in the body. */
const mayBeWide = (body: Buffer): boolean => body.length < SMALL || !isAscii(body) || body.includes('\\u');

/**
 * Bytes of memory that a body takes at most until its call has ended: its objects, its text, and next to them either the body and its
 * text while they are parsed, or the text and bytes that are made of them for the upstream.
 */
export function bodyMemory(body: Buffer, { values, fields }: JsonSize): number {
  const bytesOfText = (mayBeWide(body) ? 2 : 1) * body.length;
  return values * BYTES_OF_VALUE + fields * BYTES_OF_FIELD + 2 * bytesOfText + body.length;
}
