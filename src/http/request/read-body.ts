import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiError, invalidRequest } from '../../domain/errors.ts';
import { GrowingBytes } from '../../lib/growing-bytes.ts';
import type { Place } from '../load.ts';

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
  place: Place,
  maxBytes: number,
): Promise<Buffer> {
  if (Number(req.headers['content-length'] ?? 0) > maxBytes) throw moreThan(maxBytes);
  if (req.headers.expect !== undefined && req.httpVersion === '1.1') res.writeContinue();
  return gather(req, place, maxBytes);
}

function gather(req: IncomingMessage, place: Place, maxBytes: number): Promise<Buffer> {
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
