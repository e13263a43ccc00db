import { describe, expect, it } from 'vitest';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import {
  ADAPTIVE,
  asked,
  BARE,
  BUDGET,
  built,
  ENDPOINT,
  mappingTo,
  NEWEST,
  refusal,
  sent,
  text,
} from '../anthropic-calls.ts';

const to = (externalId: string) => ({ mapping: mappingTo(externalId) });

describe('buildRequest', () => {
  it('makes a whole request for a whole answer', () => {
    expect(built({})).toEqual({
      origin: 'https://up.example',
      path: '/v1/messages',
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'anthropic-version': '2023-06-01',
        'x-api-key': 'sk-ant-x',
      },
      body: JSON.stringify(BARE),
      stream: false,
      addresses: 'trusted',
    });
  });

  it('asks for a stream, without a key where none is asked for', () => {
    const { base, addresses } = ENDPOINT;
    const request = built({ stream: true, stream_options: { include_usage: true } }, { endpoint: { base, addresses } });
    expect(request).toMatchObject({ stream: true, headers: { accept: 'text/event-stream' } });
    expect(request.headers).not.toHaveProperty('x-api-key');
    expect(JSON.parse(request.body ?? '')).toEqual({ ...BARE, stream: true });
  });

  it.each([
    ['', '/v1/messages'],
    ['/v1', '/v1/messages'],
    ['/anthropic', '/anthropic/v1/messages'],
    ['/anthropic/v1', '/anthropic/v1/messages'],
  ])('sends to the base path %j at %s', (path, wanted) => {
    expect(built({}, { endpoint: { ...ENDPOINT, base: { origin: 'https://up.example', path } } }).path).toBe(wanted);
  });

  it('leaves the request as it was', () => {
    const fields = { messages: [{ role: 'user', content: 'Hi' }], reasoning_effort: 'low' };
    const before = JSON.stringify(fields);
    built(fields);
    expect(JSON.stringify(fields)).toBe(before);
  });
});

describe('fields', () => {
  it('that the API does not know are not sent', () => {
    const openAi = {
      frequency_penalty: 1,
      presence_penalty: 1,
      logit_bias: { 5: 1 },
      logprobs: true,
      top_logprobs: 3,
      seed: 7,
      store: true,
      metadata: { a: 'b' },
      prediction: { type: 'content', content: 'x' },
      prompt_cache_key: 'k',
      verbosity: 'low',
      n: 1,
      modalities: ['text'],
      response_format: { type: 'text' },
      parallel_tool_calls: false,
      x_new_field: { a: 1 },
      user: null,
      stop: null,
      tools: null,
    };
    expect(sent(openAi)).toEqual(BARE);
  });

  it('of the API itself go along, and features in a header', () => {
    const own = {
      top_k: 40,
      cache_control: { type: 'ephemeral' },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919', keep: { type: 'tool_uses', value: 3 } }] },
      output_config: { effort: 'low' },
    };
    const request = built({ ...own, betas: ['effort-2025-11-24', 'interleaved-thinking-2025-05-14'] });
    expect(JSON.parse(request.body ?? '')).toEqual({ ...BARE, ...own });
    expect(request.headers['anthropic-beta']).toBe('effort-2025-11-24,interleaved-thinking-2025-05-14');
  });

  it.each([
    ['several choices', { n: 2 }],
    ['audio', { audio: { format: 'wav', voice: 'a' }, modalities: ['text', 'audio'] }],
    ['OpenAI’s web search', { web_search_options: {} }],
    ['an effort that nobody knows', { reasoning_effort: 'ultra' }],
  ])('that ask for %s are refused, for another provider may take them', (_name, fields) => {
    expect(anthropicAdapter.unsupported(asked(fields))?.param).toBe(`/${Object.keys(fields)[0]}`);
  });
});

describe('max_tokens', () => {
  it.each([
    ['the gateway’s', { max_tokens: 5, max_completion_tokens: 6 }, { maxOutputTokens: 7 }, 7],
    ['max_completion_tokens', { max_tokens: 5, max_completion_tokens: 6 }, {}, 6],
    ['max_tokens', { max_tokens: 5 }, {}, 5],
    ['the model’s largest', {}, { mapping: mappingTo(BUDGET, { maxOutput: 64_000 }) }, 64_000],
    ['4,096 where nothing is known', {}, {}, 4096],
    ['not above the model’s largest', { max_tokens: 9000 }, { mapping: mappingTo(BUDGET, { maxOutput: 8192 }) }, 8192],
  ])('is %s', (_name, fields, more, wanted) => {
    expect(sent(fields, more)).toEqual({ ...BARE, max_tokens: wanted });
  });
});

describe('sampling', () => {
  const all = { temperature: 0.3, top_p: 0.9, top_k: 40 };

  it.each([
    ['an older model takes all', 'claude-sonnet-4-20250514', all, all],
    ['a later one no top_p with a temperature', BUDGET, all, { temperature: 0.3, top_k: 40 }],
    ['and a top_p alone', BUDGET, { top_p: 0.9 }, { top_p: 0.9 }],
    ['the newest take nothing', NEWEST, all, {}],
    ['nor does one since 4.7', 'claude-opus-4-7', all, {}],
    ['above 1 a temperature is 1, the API’s most', BUDGET, { temperature: 1.7 }, { temperature: 1 }],
    ['0 is a temperature', BUDGET, { temperature: 0 }, { temperature: 0 }],
    ['someone else’s model takes all', 'kimi-k2', all, all],
  ])('%s', (_name, model, fields, wanted) => {
    expect(sent(fields, to(model))).toEqual({ ...BARE, model, ...wanted });
  });
});

describe('stop, user and service_tier', () => {
  it.each([
    [{ stop: 'END' }, { stop_sequences: ['END'] }],
    [{ stop: ['a', ' \n', '', 'b'] }, { stop_sequences: ['a', 'b'] }],
    [{ stop: '\n' }, {}],
    [{ user: 'u-1' }, { metadata: { user_id: 'u-1' } }],
    [{ user: 'u-1', safety_identifier: 's-1' }, { metadata: { user_id: 's-1' } }],
    [{ user: '' }, {}],
    [{ service_tier: 'auto' }, { service_tier: 'auto' }],
    [{ service_tier: 'default' }, { service_tier: 'standard_only' }],
    [{ service_tier: 'flex' }, {}],
  ])('%j is sent as %j', (fields, wanted) => {
    expect(sent(fields)).toEqual({ ...BARE, ...wanted });
  });

  it.each(['jo@example.org', '+49 30 1234567', 'x'.repeat(257)])(
    'hashes the user id %s, which the API refuses',
    (user) => {
      const hashed = { metadata: { user_id: expect.stringMatching(/^[0-9a-f]{64}$/) } };
      expect(sent({ user })).toEqual({ ...BARE, ...hashed });
    },
  );
});

describe('an assistant message that stands last', () => {
  const messages = [
    { role: 'user', content: 'Count.' },
    { role: 'assistant', content: 'One,' },
  ];

  it('is continued by models that do', () => {
    const turns = messages.map(({ role, content }) => ({ role, content: [text(content)] }));
    expect(sent({ messages })).toEqual({ ...BARE, messages: turns });
  });

  it.each([ADAPTIVE, NEWEST])('is refused for %s, for another model may continue it', (model) => {
    expect(() => sent({ messages }, to(model))).toThrow(expect.objectContaining(refusal));
  });
});
