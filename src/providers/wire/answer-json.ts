import type { Usage } from '../../domain/usage.ts';
import { exceededBound, type JsonBounds } from '../../lib/json.ts';
import { plainText } from '../../lib/text.ts';
import type { StreamEvent } from '../../net/event-stream.ts';
import { UpstreamError, unreadable } from './upstream-error.ts';

/**
 * More than any answer holds: a depth that is far from where writing it down again would overflow the stack, and the likeliest
 * twenty tokens at each of 6,000 places.
 */
export const ANSWER_BOUNDS: JsonBounds = { depth: 1000, values: 1_000_000, fields: 10_000 };

/** A text up to here exceeds no bound that matters: one level takes two characters, and a field four. */
const SHORT = 2 * ANSWER_BOUNDS.depth;

/** A JSON object of which nothing is known yet. */
export type Fields = Readonly<Record<string, unknown>>;

/** True for a JSON object. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const NOTHING: Fields = {};

/** A JSON object as it is; an empty one for anything else. */
export const record = (value: unknown): Fields => (isRecord(value) ? value : NOTHING);

/** A count: a whole number that is not negative; anything else was not reported. */
export const count = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** Longer than any model's id. */
const MAX_MODEL_LENGTH = 512;

/** An upstream's own id of a model: it is kept, and told with every answer. Undefined for anything that is none. */
export const modelId = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= MAX_MODEL_LENGTH ? plainText(value) : undefined;

/** The parsed text of an upstream; undefined when it is no JSON, or exceeds the bounds of answers. */
export function parseJson(text: string): unknown {
  if (text.length > SHORT && exceededBound(Buffer.from(text), ANSWER_BOUNDS) !== undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** What an event of a stream holds; undefined for what is no JSON. */
export const eventJson = (event: StreamEvent): unknown =>
  event.data === undefined ? event.json : parseJson(event.data);

/** Reads an answer. Where that fails, the error carries what the provider reported for it. @throws UpstreamError */
export function paidFor<T>(usage: () => Usage | undefined, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const failure = error instanceof UpstreamError ? error : unreadable(error);
    throw failure.withUsage(usage());
  }
}
