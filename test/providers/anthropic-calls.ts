import type { Mapping } from '../../src/domain/model.ts';
import { validator } from '../../src/lib/schemas.ts';
import type { OutboundRequest } from '../../src/net/transport.ts';
import { anthropicAdapter } from '../../src/providers/anthropic/anthropic.ts';
import type { ChatCall, Endpoint } from '../../src/providers/wire/adapter.ts';
import { mappingOf } from './answers.ts';

const validateChatRequest = validator('ChatRequest');

export const ENDPOINT: Endpoint = {
  base: { origin: 'https://up.example', path: '' },
  addresses: 'trusted',
  secret: 'sk-ant-x',
};

/** Models of the three kinds: thinks by a budget, by an effort, and by an effort with much of the old refused. */
export const BUDGET = 'claude-haiku-4-5-20251001';
export const ADAPTIVE = 'claude-sonnet-4-6';
export const NEWEST = 'claude-opus-5-5';

export const mappingTo = (externalId: string, more: Partial<Mapping> = {}): Mapping =>
  mappingOf('anthropic', { externalId, reasoning: true, ...more });

export interface Asked extends Partial<Omit<ChatCall, 'request'>> {
  readonly endpoint?: Endpoint;
}

/** A call for a caller's body, which is checked as the gateway checks it. */
export function asked(fields: Record<string, unknown>, { endpoint: _, ...more }: Asked = {}): ChatCall {
  const request: unknown = JSON.parse(
    JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields }),
  );
  if (!validateChatRequest(request)) throw new Error(`not a chat request: ${JSON.stringify(request)}`);
  return { request, mapping: mappingTo(BUDGET), ...more };
}

/** The request for it. */
export const built = (fields: Record<string, unknown>, more: Asked = {}): OutboundRequest =>
  anthropicAdapter.buildRequest(asked(fields, more), more.endpoint ?? ENDPOINT);

/** The whole body sent for it. */
export function sent(fields: Record<string, unknown>, more: Asked = {}): unknown {
  const body: unknown = JSON.parse(built(fields, more).body ?? '');
  return body;
}

export const text = (said: string, more: object = {}) => ({ type: 'text', text: said, ...more });
export const HI = { role: 'user', content: [text('Hi')] };
/** What is sent for the shortest request. */
export const BARE = { model: BUDGET, max_tokens: 4096, messages: [HI] };

export const refusal = { name: 'UpstreamError', errorType: 'rejected', retryable: true };
