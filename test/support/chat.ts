import type { ChatChunk, ChatCompletion, ErrorEnvelope } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import type { TestGateway } from './gateway.ts';
import { type Answer, type Sent, send } from './request.ts';

const validateChatChunk = validator('ChatChunk');
const validateChatCompletion = validator('ChatCompletion');
const validateErrorEnvelope = validator('ErrorEnvelope');

type Headers = readonly (readonly [string, string])[];

export const bearer = (token: string): readonly [string, string] => ['authorization', `Bearer ${token}`];

export const JSON_TYPE = ['content-type', 'application/json'] as const;

/** A request that any model of the sandbox answers. */
export const hello = (more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> => ({
  model: 'sandbox-paid',
  messages: [{ role: 'user', content: 'Hello' }],
  ...more,
});

/** Asks the sandbox model that fails on request. */
export const faulty = (fault: string, more: Readonly<Record<string, unknown>> = {}): Record<string, unknown> =>
  hello({ model: 'sandbox-faulty', messages: [{ role: 'user', content: `fail:${fault}` }], ...more });

export interface ChatOptions {
  readonly token?: string;
  readonly headers?: Headers;
}

/** Posts a chat request with the first key; text and bytes go as they are. */
export function chat(gateway: TestGateway, body: object | string | Buffer, options: ChatOptions = {}): Promise<Answer> {
  const { token = gateway.firstRun.gatewayKey, headers = [] } = options;
  return post(gateway, body, [bearer(token), JSON_TYPE, ...headers]);
}

/** Posts with exactly these headers. */
export function post(
  gateway: TestGateway,
  body: object | string | Buffer,
  headers: Headers,
  more: Sent = {},
): Promise<Answer> {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return send(gateway.origin, { method: 'POST', path: '/v1/chat/completions', headers, body: bytes, ...more });
}

/** The answer as a completion of our own schema. */
export function completionOf({ status, json, text }: Answer): ChatCompletion {
  if (status === 200 && validateChatCompletion(json)) return json;
  throw new Error(`no chat completion: ${status} ${text} ${JSON.stringify(validateChatCompletion.errors)}`);
}

export function errorOf({ json, text }: Answer): ErrorEnvelope['error'] {
  if (validateErrorEnvelope(json)) return json.error;
  throw new Error(`no error envelope: ${text}`);
}

export interface EventStream {
  readonly chunks: readonly ChatChunk[];
  readonly comments: readonly string[];
  /** The failure told in band, if there was one. */
  readonly error: ErrorEnvelope['error'] | undefined;
  readonly done: boolean;
}

/** What a client reads of a stream, each event checked by our own schema. */
export function eventsOf(text: string): EventStream {
  const chunks: ChatChunk[] = [];
  const comments: string[] = [];
  let error: ErrorEnvelope['error'] | undefined;
  let done = false;
  for (const event of text.split('\n\n').filter((block) => block !== '')) {
    if (done || error !== undefined) throw new Error(`something follows the end: ${event}`);
    if (event.startsWith(': ')) comments.push(event);
    else if (event === 'data: [DONE]') done = true;
    else {
      if (!event.startsWith('data: ')) throw new Error(`no event: ${event}`);
      const parsed: unknown = JSON.parse(event.slice('data: '.length));
      if (validateErrorEnvelope(parsed)) error = parsed.error;
      else if (validateChatChunk(parsed)) chunks.push(parsed);
      else throw new Error(`no chunk: ${event} ${JSON.stringify(validateChatChunk.errors)}`);
    }
  }
  return { chunks, comments, error, done };
}

/** The text of one choice of a stream. */
export const streamedText = (chunks: readonly ChatChunk[], index = 0): string =>
  chunks
    .flatMap(({ choices }) => choices)
    .filter((choice) => choice.index === index)
    .map(({ delta }) => delta.content ?? '')
    .join('');
