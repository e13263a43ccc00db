import type { Mapping } from '../../src/domain/model.ts';
import { TEXT_ONLY } from '../../src/domain/model.ts';
import { validator } from '../../src/lib/schemas.ts';
import { createGoogleAdapter } from '../../src/providers/google/google.ts';
import type { ChatCall, Endpoint, UpstreamChunk } from '../../src/providers/wire/adapter.ts';
import { gathered, sample, streamed } from './answers.ts';

const validateChatRequest = validator('ChatRequest');

export const ENDPOINT: Endpoint = {
  base: { origin: 'https://google.example', path: '' },
  addresses: 'trusted',
  secret: 'AIzaTest',
};

export const GEMINI_3 = 'gemini-3-flash-preview';
export const GEMINI_2_5 = 'gemini-2.5-flash';

export const mapping = (externalId: string): Mapping => ({
  ...TEXT_ONLY,
  id: `google/${externalId}`,
  providerId: 'google',
  modelId: externalId,
  externalId,
  custom: false,
  names: [externalId],
  providerNames: ['google'],
  prices: {},
  freeFlag: false,
});

/** An adapter whose made-up call ids are `call_1`, `call_2`, … */
export function countingAdapter() {
  let last = 0;
  return createGoogleAdapter(() => {
    last += 1;
    return `call_${last}`;
  });
}

export function chatCall(fields: object, externalId = GEMINI_3, more: Partial<ChatCall> = {}): ChatCall {
  const request: unknown = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields };
  if (!validateChatRequest(request)) throw new Error('not a chat request');
  return { request, mapping: mapping(externalId), ...more };
}

/** The body that a chat request with these fields becomes. */
export function sentBody(fields: object, externalId = GEMINI_3, more: Partial<ChatCall> = {}): unknown {
  return JSON.parse(countingAdapter().buildRequest(chatCall(fields, externalId, more), ENDPOINT).body ?? '');
}

export const USER_TURN = { role: 'user', parts: [{ text: 'Hi' }] };

export const answered = (answer: object) => countingAdapter().parseResponse(gathered(JSON.stringify(answer)));

export const answeredSample = (name: string) => countingAdapter().parseResponse(gathered(sample(`google/${name}`)));

export async function chunksOf(...texts: string[]): Promise<UpstreamChunk[]> {
  const chunks: UpstreamChunk[] = [];
  for await (const chunk of countingAdapter().parseStream(streamed(...texts))) chunks.push(chunk);
  return chunks;
}

/** A stream of these answers. */
export const events = (...answers: unknown[]): string =>
  answers.map((answer) => `data: ${JSON.stringify(answer)}\r\n\r\n`).join('');
