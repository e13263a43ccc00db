import type { Answers } from '../core/call/answers.ts';
import type { WrittenAnswer } from '../core/call/written-answer.ts';
import { ApiError } from '../domain/errors.ts';
import { exceededBound } from '../lib/json-bounds.ts';
import type { ParsedJson } from '../net/event-stream.ts';

/** What is parsed on the serving thread in some 10 ms. */
const BOUNDS = { depth: 200, values: 20_000, fields: 10_000 };

/** Bytes of an answer: clients cut a result at 1 MiB, and to parse much more would keep everyone waiting. */
const MOST_BYTES = 2 * 1024 * 1024;

/**
 * A whole answer as the object that a REST caller would get, though not yet known to be well-formed.
 * @throws ApiError 502 for one that no client could show, or of more values than a tool's result has use for; it is still paid for
 */
export function readAnswer(answer: WrittenAnswer<object>): unknown {
  const json = answer.json(answer.ours);
  if (typeof json === 'string') return JSON.parse(json);
  const length = json.reduce((sum, piece) => sum + piece.length, 0);
  const bytes = Buffer.concat(length > MOST_BYTES ? [] : json);
  if (length > MOST_BYTES || exceededBound(bytes, BOUNDS) !== undefined) {
    throw new ApiError(502, 'upstream_error', 'The answer of the provider is too large for a tool result.');
  }
  return JSON.parse(bytes.toString());
}

/** The same of an answer with pictures. One that is large is parsed on another thread. @throws TransportError, ApiError 503 */
export async function readPictures(
  answer: WrittenAnswer<object>,
  parseLarge: (json: Buffer) => ReturnType<Answers['parse']>,
): Promise<ParsedJson> {
  const json = answer.json(answer.ours);
  return typeof json === 'string' ? { json: JSON.parse(json), longTexts: new Map() } : parseLarge(Buffer.concat(json));
}

/** A field of an object, or an entry of a list; undefined where there is none. */
export const field = (value: unknown, name: string | number): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
