import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

/** What an upstream was sent. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  readonly json: unknown;
}

export type Reply = (response: ServerResponse, received: Received) => void | Promise<void>;

/** An OpenAI-compatible server on loopback that answers as the test says. */
export interface TestUpstream {
  readonly origin: string;
  /** Every request since `begin`, oldest first. */
  readonly received: readonly Received[];
  /** Answers every request from now on with `reply`, and forgets what was received. */
  begin(reply: Reply): void;
  close(): Promise<void>;
}

export const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

export const completion = (content: string, more: object = {}): object => ({
  id: 'chatcmpl-upstream',
  object: 'chat.completion',
  created: 1,
  model: 'upstream-model-2026',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: USAGE,
  ...more,
});

/** A chunk as OpenAI sends it. */
export const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: 'chatcmpl-upstream',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'upstream-model-2026',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

export const USAGE_CHUNK = { ...chunk({}), choices: [], usage: USAGE };

export const json =
  (body: unknown, status = 200): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

export const failure = (status: number, message: string): Reply =>
  json({ error: { message, type: 'server_error', param: null, code: null } }, status);

/** Sends events and leaves the stream open. */
export function writeEvents(response: ServerResponse, ...events: (object | string)[]): void {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
}

/** A whole stream. */
export const events =
  (...list: (object | string)[]): Reply =>
  (response) => {
    writeEvents(response, ...list, '[DONE]');
    response.end();
  };

/** Sends events, and when they have left, hangs up. */
export const cutAfter =
  (...list: object[]): Reply =>
  (response) => {
    writeEvents(response, ...list);
    response.write('', () => response.destroy());
  };

export const hangUp: Reply = (response) => {
  response.destroy();
};

async function read(request: IncomingMessage): Promise<Received> {
  const chunks: Buffer[] = [];
  for await (const bytes of request) chunks.push(bytes);
  const text = Buffer.concat(chunks).toString('utf8');
  const parsed: unknown = text === '' ? undefined : JSON.parse(text);
  return { path: request.url ?? '', headers: request.headers, text, json: parsed };
}

export async function startUpstream(): Promise<TestUpstream> {
  let reply: Reply = json(completion('Hello'));
  let received: Received[] = [];
  const server = createServer(async (request, response) => {
    const call = await read(request);
    received.push(call);
    await reply(response, call);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    get received() {
      return received;
    },
    begin(next) {
      reply = next;
      received = [];
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The environment that makes an upstream a provider; prices in USD per million tokens. */
export function upstreamEnv(name: string, origin: string, models: string, prices?: string): Record<string, string> {
  const prefix = `UPSTREAM_${name.toUpperCase()}`;
  return {
    [`${prefix}_BASE_URL`]: `${origin}/v1`,
    [`${prefix}_API_KEY`]: `secret-of-${name}`,
    [`${prefix}_MODELS`]: models,
    ...(prices === undefined ? {} : { [`${prefix}_PRICES`]: prices }),
  };
}
