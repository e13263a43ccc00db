import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { GrowingBytes } from '../../domain/growing-bytes.ts';
import { type JsonBounds, measureJson } from '../../domain/json-bounds.ts';
import type { Telemetry } from '../../telemetry.ts';
import { bodyMemory } from '../body-memory.ts';
import type { Place } from '../load.ts';
import { type AppMiddleware, placeOf } from '../state.ts';
import { timed } from '../timed.ts';

export interface BodyLimits extends JsonBounds {
  readonly bytes: number;
}

/** Most pieces in which a body may come, and one more for so many bytes: each takes a little time, however small it is. */
const MAX_PIECES = 10_000;
const BYTES_OF_PIECE = 1024;

const tooLarge = (message: string): ApiError => new ApiError(413, 'request_too_large', message);

const moreThan = (bytes: number): ApiError => tooLarge(`The request body is larger than ${bytes} bytes.`);

const cutOff = (): ApiError => invalidRequest('The request body did not arrive completely.');

/** `application/json`, with parameters or without. */
function isJson(contentType: string): boolean {
  const end = contentType.indexOf(';');
  const type = end === -1 ? contentType : contentType.slice(0, end);
  return type.trim().toLowerCase() === 'application/json';
}

function assertJson(req: IncomingMessage): void {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ApiError(
      415,
      'unsupported_media_type',
      'The request body must not be encoded (content-encoding: identity).',
    );
  }
  if (!isJson(req.headers['content-type'] ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'The request body must be application/json.');
  }
}

/** Gathers the body, never more than `maxBytes` of it and never more than there is room for. */
function readBody(req: IncomingMessage, place: Place, maxBytes: number): Promise<Buffer> {
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
    assertJson(req);
    if (Number(req.headers['content-length'] ?? 0) > limits.bytes) throw moreThan(limits.bytes);
    if (req.headers.expect !== undefined && req.httpVersion === '1.1') res.writeContinue();
    const place = placeOf(ctx);
    const bytes = await readBody(req, place, limits.bytes);
    state.bodyBytes = bytes.length;
    state.body = timed('parsing a request body', bytes.length, telemetry, () => parseJson(bytes, place, limits));
    return next();
  };
}
