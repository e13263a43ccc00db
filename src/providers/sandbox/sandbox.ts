import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { ApiError } from '../../domain/errors.ts';
import { SharpUnavailable } from '../../lib/sharp.ts';
import { completeChat, type SandboxPace } from './chat.ts';
import { Painter } from './draw-image.ts';
import { generateImages } from './images.ts';
import { ALL_MODELS } from './models.ts';
import { moderate } from './moderations.ts';
import { readBody, sendError, sendJson } from './wire.ts';

/** A running sandbox. */
export interface Sandbox {
  /** `http://127.0.0.1:<port>`; the API stands under `/v1`. */
  readonly origin: string;
  /** It answers only those who send this key, as OpenAI's clients do. Another one for each start. */
  readonly key: string;
  close(): Promise<void>;
}

type Route = (body: string, response: ServerResponse, signal: AbortSignal) => Promise<void> | void;

const SLOW: SandboxPace = { firstByteMs: 1500, chunkMs: 100 };

/**
 * The embedded upstream: a deterministic server of OpenAI's wire format on a free loopback port, so that the product works
 * without an account and without a network. To the gateway it is a provider like any other. Other processes of the machine, and web
 * pages that give their own name to its address, are turned away.
 */
export async function startSandbox(slow: SandboxPace = SLOW): Promise<Sandbox> {
  const painter = new Painter();
  const key = randomBytes(32).toString('base64url');
  let host = '';
  const routes: Readonly<Record<string, Route>> = {
    'GET /v1/models': (_body, response) => sendJson(response, 200, modelList()),
    'POST /v1/chat/completions': (body, response, signal) => completeChat(body, response, { slow, painter }, signal),
    'POST /v1/images/generations': (body, response, signal) => generateImages(body, response, painter, signal),
    'POST /v1/moderations': moderate,
  };
  const server = createServer((request, response) => {
    const refused = refusalOf(request, host, key);
    if (refused === undefined) void serve(request, response, routes);
    else refuse(response, refused);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the sandbox has no port');
  host = `127.0.0.1:${address.port}`;
  return {
    origin: `http://${host}`,
    key,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

type Refusal = readonly [status: number, code: string, message: string];

/** Why a request is not for the sandbox, judged by its head alone; undefined: it is. */
function refusalOf({ headers }: IncomingMessage, host: string, key: string): Refusal | undefined {
  if (headers.host !== host) return [421, 'misdirected_request', 'The sandbox does not have this name.'];
  const { authorization = '' } = headers;
  if (timingSafeEqual(digestOf(authorization), digestOf(`Bearer ${key}`))) return undefined;
  return [401, 'invalid_api_key', 'The sandbox answers its own gateway alone.'];
}

const digestOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** The connection ends with the answer: the body is not read. */
function refuse(response: ServerResponse, [status, code, message]: Refusal): void {
  response.setHeader('connection', 'close');
  sendError(response, status, code, message);
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
    if (response.headersSent) response.destroy();
    else if (error instanceof ApiError) sendError(response, error.status, error.code, error.message);
    else if (error instanceof SharpUnavailable)
      sendError(response, 500, 'pictures_unavailable', `The sandbox cannot draw: ${error.message}.`);
    else response.destroy(error instanceof Error ? error : undefined);
  }
}

function modelList(): object {
  return { object: 'list', data: ALL_MODELS.map((id) => ({ id, object: 'model', created: 0, owned_by: 'sandbox' })) };
}
