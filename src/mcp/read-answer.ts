import type { WrittenAnswer } from '../core/written-answer.ts';
import { ApiError } from '../domain/errors.ts';
import { exceededBound } from '../domain/json-bounds.ts';

/** What is parsed on the serving thread in some 10 ms. */
const BOUNDS = { depth: 200, values: 20_000, fields: 10_000 };

/**
 * A whole answer as the object that a REST caller would get, though not yet known to be well-formed.
 * @param mostBytes of one that is large, as JSON
 * @throws ApiError 502 for one that holds more, or more values than a tool's result has use for; it is paid for all the same
 */
export function readAnswer(answer: WrittenAnswer<object>, mostBytes = Number.POSITIVE_INFINITY): unknown {
  const json = answer.json(answer.ours);
  if (typeof json === 'string') return JSON.parse(json);
  const length = json.reduce((sum, piece) => sum + piece.length, 0);
  const bytes = Buffer.concat(length > mostBytes ? [] : json);
  if (length > mostBytes || exceededBound(bytes, BOUNDS) !== undefined) {
    throw new ApiError(502, 'upstream_error', 'The answer of the provider is too large for a tool result.');
  }
  return JSON.parse(bytes.toString());
}

/** A field of an object, or an entry of a list; undefined where there is none. */
export const field = (value: unknown, name: string | number): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
