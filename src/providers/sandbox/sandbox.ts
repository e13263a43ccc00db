import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { ThreadsBusy } from '../../lib/threads.ts';
import { completeChat, type SandboxPace } from './chat.ts';
import { generateImages } from './images.ts';
import { ALL_MODELS } from './models.ts';
import { moderate } from './moderations.ts';
import { createPainter } from './painter.ts';
import { readBody, sendError, sendJson } from './wire.ts';

/** A running sandbox. */
export interface Sandbox {
  /** `http://127.0.0.1:<port>`; the API stands under `/v1`. */
  readonly origin: string;
  close(): Promise<void>;
}

type Route = (body: string, response: ServerResponse, signal: AbortSignal) => Promise<void> | void;

const SLOW: SandboxPace = { firstByteMs: 1500, chunkMs: 100 };

/**
 * The embedded upstream: a deterministic server of OpenAI's wire format on a free loopback port, so that the product works
 * without an account and without a network. To the gateway it is a provider like any other.
 */
export async function startSandbox(slow: SandboxPace = SLOW): Promise<Sandbox> {
  const painter = createPainter();
  const routes: Readonly<Record<string, Route>> = {
    'GET /v1/models': (_body, response) => sendJson(response, 200, modelList()),
    'POST /v1/chat/completions': (body, response, signal) => completeChat(body, response, { slow, painter }, signal),
    'POST /v1/images/generations': (body, response, signal) => generateImages(body, response, painter, signal),
    'POST /v1/moderations': moderate,
  };
  const server = createServer((request, response) => {
    void serve(request, response, routes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sandbox has no port');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await painter.close();
    },
  };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  routes: Readonly<Record<string, Route>>,
): Promise<void> {
  const left = new AbortController();
  response.on('close', () => left.abort());
  try {
    const body = await readBody(request);
    const route = routes[`${request.method} ${request.url}`];
    if (body === undefined) sendError(response, 413, 'request_too_large', 'The request is too large.');
    else if (route === undefined) sendError(response, 404, 'not_found', 'The sandbox has no such path.');
    else await route(body, response, left.signal);
  } catch (error) {
    if (left.signal.aborted) return;
    if (error instanceof ThreadsBusy)
      sendError(response, 503, 'overloaded', 'The sandbox has too many pictures to draw.');
    else response.destroy(error instanceof Error ? error : undefined);
  }
}

function modelList(): object {
  return { object: 'list', data: ALL_MODELS.map((id) => ({ id, object: 'model', created: 0, owned_by: 'sandbox' })) };
}
