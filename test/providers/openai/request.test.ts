import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import type { ChatCall, Endpoint } from '../../../src/providers/wire/adapter.ts';
import { mappingOf } from '../answers.ts';

const validateChatRequest = validator('ChatRequest');

const MAPPING = mappingOf('acme', { externalId: 'gpt-x-2026' });

const ENDPOINT: Endpoint = {
  base: { origin: 'https://up.example', path: '/api/v1' },
  addresses: 'trusted',
  secret: 'sk-x',
};

function parsed(text: string): ChatRequest {
  const request: unknown = JSON.parse(text);
  if (!validateChatRequest(request)) throw new Error('not a chat request');
  return request;
}

function sent(text: string, more: Partial<ChatCall> = {}): string | undefined {
  return openAiAdapter.buildRequest({ request: parsed(text), mapping: MAPPING, ...more }, ENDPOINT).body;
}

const MESSAGES = '"messages":[{"role":"user","content":"hi"}]';

describe('buildRequest', () => {
  it('makes a whole request for a whole answer', () => {
    const call = { request: parsed(`{"model":"gpt-x",${MESSAGES}}`), mapping: MAPPING };
    expect(openAiAdapter.buildRequest(call, ENDPOINT)).toEqual({
      origin: 'https://up.example',
      path: '/api/v1/chat/completions',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: 'Bearer sk-x' },
      body: `{"model":"gpt-x-2026",${MESSAGES}}`,
      stream: false,
      addresses: 'trusted',
    });
  });

  it('sends no authorization to an upstream that asks for none, and accepts a stream where one is wanted', () => {
    const { base, addresses } = ENDPOINT;
    const call = { request: parsed(`{"model":"m","stream":true,${MESSAGES}}`), mapping: MAPPING };
    const request = openAiAdapter.buildRequest(call, { base, addresses });
    expect(request).toMatchObject({ stream: true, headers: { accept: 'text/event-stream' } });
    expect(Object.keys(request.headers)).not.toContain('authorization');
  });

  it('forwards what it takes, at any depth, in its place', () => {
    const rest = `"chat_template_kwargs":{"a":[1,null,{"b":"c"}]},"temperature":0.5,"seed":7`;
    expect(sent(`{${rest},"model":"m",${MESSAGES}}`)).toBe(`{${rest},"model":"gpt-x-2026",${MESSAGES}}`);
  });

  it('forwards __proto__ and constructor inside free values as own properties, and lone surrogates as escapes', () => {
    const odd = `"metadata":{"__proto__":"admin","constructor":"x"},"user":"\\ud800"`;
    expect(sent(`{"model":"m",${odd},${MESSAGES}}`)).toBe(`{"model":"gpt-x-2026",${odd},${MESSAGES}}`);
  });

  it.each([
    ['nothing', '', '{"include_usage":true}'],
    ['null', '"stream_options":null,', '{"include_usage":true}'],
    ['false', '"stream_options":{"include_usage":false},', '{"include_usage":true}'],
    [
      'other options',
      '"stream_options":{"include_obfuscation":false},',
      '{"include_obfuscation":false,"include_usage":true}',
    ],
  ])('asks a stream for its usage when the caller said %s', (_name, options, wanted) => {
    const body: unknown = JSON.parse(sent(`{"model":"m","stream":true,${options}${MESSAGES}}`) ?? '');
    expect(body).toHaveProperty('stream_options', JSON.parse(wanted));
  });

  it('adds no stream options to a request without a stream', () => {
    expect(sent(`{"model":"m","stream":false,${MESSAGES}}`)).toBe(`{"model":"gpt-x-2026","stream":false,${MESSAGES}}`);
  });

  it('sets the maximum that the gateway chose', () => {
    expect(sent(`{"model":"m",${MESSAGES}}`, { maxOutputTokens: 12 })).toBe(
      `{"model":"gpt-x-2026",${MESSAGES},"max_tokens":12}`,
    );
  });

  it.each([
    ['models', '["other"]'],
    ['fallbacks', '[{"model":"other"}]'],
    ['__proto__', '{"model":"other"}'],
  ])('does not take %s, by which the upstream could choose a model that nobody decided on', (field, value) => {
    const request = parsed(`{"model":"m","${field}":${value},${MESSAGES}}`);
    expect(openAiAdapter.unsupported({ request, mapping: MAPPING })).toEqual({
      param: `/${field}`,
      message: `\`${field}\` is not a field that the provider takes.`,
    });
    expect(sent(`{"model":"m","${field}":${value},${MESSAGES}}`)).toBe(`{"model":"gpt-x-2026",${MESSAGES}}`);
  });

  it('takes a field that is null as absent', () => {
    const request = parsed(`{"model":"m","models":null,${MESSAGES}}`);
    expect(openAiAdapter.unsupported({ request, mapping: MAPPING })).toBe(undefined);
  });

  it('leaves the request as it was', () => {
    const request = Object.freeze(parsed(`{"model":"m","stream":true,${MESSAGES}}`));
    openAiAdapter.buildRequest({ request, mapping: MAPPING, maxOutputTokens: 1 }, ENDPOINT);
    expect(JSON.stringify(request)).toBe(`{"model":"m","stream":true,${MESSAGES}}`);
  });
});
