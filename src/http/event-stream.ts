import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { toApiError } from '../core/api-error.ts';
import type { ApiError } from '../domain/errors.ts';
import { isOurFault } from './middleware/error-envelope.ts';

export interface EventStreamOptions {
  /** Aborted when the client has left. */
  signal: AbortSignal;
  /** Milliseconds without a byte after which a comment line keeps proxies from closing the connection. */
  keepAliveMs: number;
  /** Told of a failure after the first byte, which the status can no longer tell. */
  onFailure(failure: ApiError): void;
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
};

/** Waits until the client has taken what was written: a slow client must not make memory grow. Ends early when it leaves. */
async function drained(res: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(res, 'drain', { signal }).catch(() => undefined);
}

/**
 * Writes chunks as server-sent events, `[DONE]` last. The first byte, a chunk or a comment, commits status 200; a failure before
 * it is thrown (and gets its own status), a failure after it is told in band, and the stream then ends without `[DONE]`
 * (decisions.md, section 5).
 */
export async function writeEventStream(
  res: ServerResponse,
  chunks: AsyncIterable<object>,
  { signal, keepAliveMs, onFailure }: EventStreamOptions,
): Promise<void> {
  const commit = (): void => {
    if (!res.headersSent) res.writeHead(200, HEADERS);
  };
  const quiet = setInterval(() => {
    commit();
    res.write(': keep-alive\n\n');
  }, keepAliveMs);
  try {
    for await (const chunk of chunks) {
      quiet.refresh();
      commit();
      if (!res.write(`data: ${JSON.stringify(chunk)}\n\n`)) await drained(res, signal);
      if (signal.aborted) return;
    }
    commit();
    res.end('data: [DONE]\n\n');
  } catch (error) {
    if (!res.headersSent) throw error;
    const failure = toApiError(error);
    // That the client left is no failure, unless what it left behind could not be recorded.
    if (!signal.aborted || isOurFault(failure)) onFailure(failure);
    res.end(`data: ${JSON.stringify(failure.envelope())}\n\n`);
  } finally {
    clearInterval(quiet);
  }
}
