import { isAscii, isUtf8 } from 'node:buffer';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import type { Validator } from '../../generated/validators.js';
import { type JsonBounds, type JsonSize, measureJson } from '../../lib/json-bounds.ts';
import type { Telemetry } from '../../telemetry.ts';
import type { Place } from '../load.ts';
import { assertBodyType, readBody } from '../request/read-body.ts';
import { type AppContext, type AppMiddleware, placeOf } from '../state.ts';

export interface BodyLimits extends JsonBounds {
  readonly bytes: number;
}

function boundFault(exceeded: keyof JsonBounds, bounds: JsonBounds): ApiError {
  switch (exceeded) {
    case 'depth':
      return invalidRequest(`The request body is nested deeper than ${bounds.depth} levels.`);
    case 'values':
      return invalidRequest(`The request body holds more than ${bounds.values} values.`);
    case 'fields':
      return invalidRequest(`An object in the request body has more than ${bounds.fields} fields.`);
  }
}

/** Nothing is parsed that exceeds a bound, or for which there is no room. */
function parseJson(bytes: Buffer, place: Place, bounds: JsonBounds): unknown {
  if (!isUtf8(bytes)) throw new ApiError(400, 'invalid_json', 'The request body is not UTF-8.');
  const size = measureJson(bytes, bounds);
  if (size.exceeded !== undefined) throw boundFault(size.exceeded, bounds);
  place.hold(bodyMemory(bytes, size));
  try {
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    return parsed;
  } catch {
    throw new ApiError(400, 'invalid_json', 'The request body is not valid JSON.');
  }
}

/** Step 6 of the journey: bytes become JSON of bounded size and form; 413, 415, 400 or 503 otherwise. */
export function jsonBody(limits: BodyLimits, telemetry: Pick<Telemetry, 'ran'>): AppMiddleware {
  return async (ctx, next) => {
    const { req, res, state } = ctx;
    assertBodyType(req, 'application/json');
    const place = placeOf(ctx);
    const waitedFrom = performance.now();
    const bytes = await readBody(req, res, place, limits.bytes);
    state.receivingMs = performance.now() - waitedFrom;
    state.bodyBytes = bytes.length;
    state.body = timed('parsing a request body', bytes.length, telemetry, () => parseJson(bytes, place, limits));
    return next();
  };
}

/** Step 7 of the journey: the parsed body as the request that the validator says it is. @throws ApiError 400 */
export const checkedBody = <T>({ state }: AppContext, validator: Validator<T>, telemetry: Pick<Telemetry, 'ran'>): T =>
  timed('validating a request body', state.bodyBytes, telemetry, () => checkOpenAiShape(validator, state.body));

/** Work on fewer bytes is too short to be worth a look at the clock. */
const LARGE = 64 * 1024;

/** Work on a request body, of which the log tells when it keeps everyone waiting. */
function timed<T>(what: string, bytes: number, telemetry: Pick<Telemetry, 'ran'>, work: () => T): T {
  if (bytes < LARGE) return work();
  const startedAt = performance.now();
  try {
    return work();
  } finally {
    telemetry.ran(what, startedAt, bytes);
  }
}

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
