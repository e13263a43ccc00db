import { exceededBound } from '../domain/json-bounds.ts';

/** Deeper than any answer nests, and far from where writing it down again would overflow the stack. */
const MAX_DEPTH = 1000;
const BOUNDS = { depth: MAX_DEPTH, values: Number.POSITIVE_INFINITY, fields: Number.POSITIVE_INFINITY };

/** True for a JSON object. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const NOTHING: Readonly<Record<string, unknown>> = {};

/** A JSON object as it is; an empty one for anything else. */
export const record = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : NOTHING);

/** A count: a whole number that is not negative; anything else was not reported. */
export const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** The parsed text of an upstream; undefined when it is no JSON, or nested deeper than 1,000 levels. */
export function parseJson(text: string): unknown {
  // Each level takes two characters at least, so a text of usual length needs no look.
  if (text.length > 2 * MAX_DEPTH && exceededBound(Buffer.from(text), BOUNDS) !== undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
