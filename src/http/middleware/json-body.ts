import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { ApiError, invalidRequest, overloaded } from '../../domain/errors.ts';
import { depthExceeds } from '../../domain/json-depth.ts';
import type { AppMiddleware, RequestState } from '../state.ts';
import type { Load } from './overload.ts';

export interface BodyLimits {
  maxBytes: number;
  maxDepth: number;
}

const tooLarge = (maxBytes: number): ApiError =>
  new ApiError(413, 'request_too_large', `The request body is larger than ${maxBytes} bytes.`);

const cutOff = (): ApiError => invalidRequest('The request body did not arrive whole.');

function assertJson(req: IncomingMessage): void {
  const encoding = req.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ApiError(
      415,
      'unsupported_media_type',
      'The request body must not be encoded (content-encoding: identity).',
    );
  }
  if (!/^application\/json\s*(;|$)/i.test(req.headers['content-type'] ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'The request body must be application/json.');
  }
}

/** Gathers the body, never more than `maxBytes` of it and never more than the process has room for. */
function readBody(req: IncomingMessage, state: RequestState, load: Load, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const stop = (error: ApiError): void => {
      req.removeAllListeners('data');
      req.resume();
      reject(error);
    };
    req.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxBytes) return stop(tooLarge(maxBytes));
      if (load.bufferedBytes + chunk.length > load.limits.maxBufferedBytes) return stop(overloaded());
      load.bufferedBytes += chunk.length;
      state.bufferedBytes += chunk.length;
      chunks.push(chunk);
    });
    req.on('end', () =>
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, size)),
    );
    req.on('error', () => reject(cutOff()));
    req.on('close', () => {
      if (!req.complete) reject(cutOff());
    });
  });
}

function parseJson(bytes: Buffer, maxDepth: number): unknown {
  if (!isUtf8(bytes)) throw new ApiError(400, 'invalid_json', 'The request body is not UTF-8.');
  if (depthExceeds(bytes, maxDepth)) {
    throw invalidRequest(`The request body is nested deeper than ${maxDepth} levels.`);
  }
  try {
    const parsed: unknown = JSON.parse(bytes.toString('utf8'));
    return parsed;
  } catch {
    throw new ApiError(400, 'invalid_json', 'The request body is not valid JSON.');
  }
}

/** Step 6 of the journey: bytes become JSON of bounded size and depth; 413, 415 or 400 otherwise. */
export function jsonBody(load: Load, limits: BodyLimits): AppMiddleware {
  return async (ctx, next) => {
    assertJson(ctx.req);
    if (Number(ctx.req.headers['content-length'] ?? 0) > limits.maxBytes) throw tooLarge(limits.maxBytes);
    const bytes = await readBody(ctx.req, ctx.state, load, limits.maxBytes);
    ctx.state.body = parseJson(bytes, limits.maxDepth);
    return next();
  };
}
