import { isAscii, isUtf8 } from 'node:buffer';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { checkOpenAiShape } from '../domain/check-shape.ts';
import { ApiError, invalidRequest } from '../domain/errors.ts';
import { GrowingBytes, type JsonBounds, type JsonSize, measureJson } from '../lib/json.ts';
import type { Validator } from '../lib/schemas.ts';
import type { Telemetry } from '../telemetry/telemetry.ts';
import { type AppMiddleware, type LoadPlace, loadPlaceOf, type RequestContext } from './state.ts';

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
function parseJson(bytes: Buffer, place: LoadPlace, bounds: JsonBounds): unknown {
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
    const place = loadPlaceOf(ctx);
    const waitedFrom = performance.now();
    const bytes = await readBody(req, res, place, limits.bytes);
    state.receivingMs = performance.now() - waitedFrom;
    state.bodyBytes = bytes.length;
    state.body = timed('parsing a request body', bytes.length, telemetry, () => parseJson(bytes, place, limits));
    return next();
  };
}

/** Step 7 of the journey: the parsed body as the request that the validator says it is. @throws ApiError 400 */
export const checkedBody = <T>(
  { state }: RequestContext,
  validator: Validator<T>,
  telemetry: Pick<Telemetry, 'ran'>,
): T => timed('validating a request body', state.bodyBytes, telemetry, () => checkOpenAiShape(validator, state.body));

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

/** Most pieces in which a body may come, and one more for so many bytes: each takes a little time, however small it is. */
const MAX_PIECES = 10_000;
const BYTES_OF_PIECE = 1024;

const tooLarge = (message: string): ApiError => new ApiError(413, 'request_too_large', message);

const moreThan = (bytes: number): ApiError => tooLarge(`The request body is larger than ${bytes} bytes.`);

const cutOff = (): ApiError => invalidRequest('The request body did not arrive completely.');

/** @param type in small letters. @throws ApiError 415 for another content type, with parameters or without, and any content encoding */
export function assertBodyType(req: IncomingMessage, type: string): void {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ApiError(
      415,
      'unsupported_media_type',
      'The request body must not be encoded (content-encoding: identity).',
    );
  }
  const [given = ''] = (req.headers['content-type'] ?? '').split(';', 1);
  if (given.trim().toLowerCase() === type) return;
  throw new ApiError(415, 'unsupported_media_type', `The request body must be ${type}.`);
}

/** The whole body, never more than `maxBytes` of it and never more than there is room for. @throws ApiError 413, 400, 503 */
export async function readBody(
  req: IncomingMessage,
  res: ServerResponse,
  place: LoadPlace,
  maxBytes: number,
): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw moreThan(maxBytes);
  if (req.headers.expect !== undefined && req.httpVersion === '1.1') res.writeContinue();
  return gather(req, place, maxBytes);
}

function gather(req: IncomingMessage, place: LoadPlace, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const announced = Number(req.headers['content-length'] ?? Number.NaN);
    const body = new GrowingBytes();
    // A body that comes in one piece needs no buffer of its own.
    let whole: Buffer | undefined;
    let pieces = 0;
    const take = (chunk: Buffer): void => {
      pieces += 1;
      if (chunk.length === announced) {
        whole = chunk;
        return;
      }
      if (body.length + chunk.length > maxBytes) throw moreThan(maxBytes);
      body.append(chunk);
      if (pieces > MAX_PIECES + body.length / BYTES_OF_PIECE) {
        throw tooLarge('The request body comes in too many small pieces.');
      }
      place.hold(body.capacity);
    };
    req.on('data', (chunk: Buffer) => {
      try {
        take(chunk);
      } catch (error) {
        req.removeAllListeners('data');
        req.pause();
        reject(error);
      }
    });
    req.on('end', () => resolve(whole ?? body.take()));
    req.on('error', () => reject(cutOff()));
    req.on('close', () => {
      if (!req.complete) reject(cutOff());
    });
  });
}
