import { describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../../src/generated/types.ts';
import { openAiAdapter, openAiAdapterFor } from '../../../src/providers/openai/openai.ts';
import type { ChatCall } from '../../../src/providers/wire/adapter.ts';
import { mappingOf } from '../answers.ts';

const PROVIDERS = [
  'openai',
  'mistral',
  'groq',
  'deepseek',
  'xai',
  'together',
  'fireworks',
  'cerebras',
  'moonshotai',
  'openrouter',
];

const USER = { role: 'user' as const, content: 'hi' };

interface Options extends Partial<Pick<ChatCall, 'maxOutputTokens' | 'namedFields'>> {
  readonly reasoning?: boolean;
}

/** The body that a provider gets for these fields of a request. */
function sent(
  providerId: string,
  fields: object,
  { reasoning = false, ...more }: Options = {},
): Record<string, unknown> {
  const request: ChatRequest = { model: 'm', messages: [USER], ...fields };
  const call = { request, mapping: mappingOf(providerId, { reasoning }), ...more };
  const endpoint = { base: { origin: 'https://up.example', path: '' }, addresses: 'public' as const };
  return JSON.parse(openAiAdapterFor(providerId).buildRequest(call, endpoint).body ?? '');
}

/** What a provider cannot take of these fields, and what it leaves out. */
function fitOf(providerId: string, fields: object) {
  const call = { request: { model: 'm', messages: [USER], ...fields }, mapping: mappingOf(providerId) };
  const adapter = openAiAdapterFor(providerId);
  return { unsupported: adapter.unsupported(call), dropped: adapter.dropped(call) };
}

/** The messages that a provider gets instead of this one. */
const message = (providerId: string, one: object, reasoning = false): unknown =>
  sent(providerId, { messages: [one] }, { reasoning }).messages;

const body = (fields: object): object => ({ model: 'm-2026', messages: [USER], ...fields });

describe('openAiAdapterFor', () => {
  it('gives one adapter to all that have no dialect of their own, and each other provider its own', () => {
    for (const id of ['sandbox', 'ollama', 'custom:acme', '__proto__'])
      expect(openAiAdapterFor(id)).toBe(openAiAdapter);
    expect(new Set([openAiAdapter, ...PROVIDERS.map(openAiAdapterFor)]).size).toBe(PROVIDERS.length + 1);
    expect(openAiAdapterFor('mistral')).toBe(openAiAdapterFor('mistral'));
  });
});

describe('the most tokens to generate', () => {
  const NEWER = ['openai', 'groq', 'xai', 'cerebras', 'moonshotai'];
  const field = (id: string): string => (NEWER.includes(id) ? 'max_completion_tokens' : 'max_tokens');

  it.each(PROVIDERS)('go to %s in the one field that it knows, whichever the caller used', (id) => {
    expect(sent(id, { max_tokens: 5 })).toEqual(body({ [field(id)]: 5 }));
    expect(sent(id, { max_completion_tokens: 6 })).toEqual(body({ [field(id)]: 6 }));
    expect(sent(id, { max_tokens: 5, max_completion_tokens: 6 })).toEqual(body({ [field(id)]: 6 }));
    expect(sent(id, { max_tokens: 5, max_completion_tokens: null })).toEqual(body({ [field(id)]: 5 }));
    expect(sent(id, {})).toEqual(body({}));
  });

  it.each(PROVIDERS)("are the gateway's for %s when it has set them", (id) => {
    expect(sent(id, { max_tokens: 5, max_completion_tokens: 6 }, { maxOutputTokens: 7 })).toEqual(
      body({ [field(id)]: 7 }),
    );
  });

  it('go to a server without a dialect in the field that the caller used', () => {
    expect(sent('acme', { max_tokens: 5, max_completion_tokens: 6 })).toEqual(
      body({ max_tokens: 5, max_completion_tokens: 6 }),
    );
    expect(sent('acme', { max_completion_tokens: 6 }, { maxOutputTokens: 7 })).toEqual(
      body({ max_completion_tokens: 7 }),
    );
    expect(sent('acme', { max_tokens: 5 }, { maxOutputTokens: 7 })).toEqual(body({ max_tokens: 7 }));
    expect(sent('acme', {}, { maxOutputTokens: 7 })).toEqual(body({ max_tokens: 7 }));
  });
});

describe('request fields', () => {
  it.each([...PROVIDERS, 'acme'])('go to %s if its table or its operator knows them', (id) => {
    const namedFields = new Set(['x_named']);
    expect(sent(id, { x_new: { a: 1 }, x_named: { a: 1 }, stop: 'x' }, { namedFields })).toEqual(
      body({ x_named: { a: 1 }, stop: 'x' }),
    );
  });

  it.each(PROVIDERS)('ask %s for the usage of a stream, unless it refuses to be asked', (id) => {
    const asked = sent(id, { stream: true, stream_options: { include_obfuscation: false } });
    const wanted = id === 'mistral' ? {} : { stream_options: { include_obfuscation: false, include_usage: true } };
    expect(asked).toEqual(body({ stream: true, ...wanted }));
  });

  it('are renamed for Mistral, where the own name of the provider comes first', () => {
    expect(sent('mistral', { seed: 7 })).toEqual(body({ random_seed: 7 }));
    expect(sent('mistral', { seed: 7, random_seed: 8 })).toEqual(body({ random_seed: 8 }));
    expect(sent('groq', { seed: 7 })).toEqual(body({ seed: 7 }));
  });

  it.each([
    ['mistral', { user: 'u', safety_identifier: 's', store: true, service_tier: 'flex', verbosity: 'low' }],
    ['mistral', { logit_bias: { '50256': -100 } }],
    ['groq', { logit_bias: { '50256': -100 } }],
    ['xai', { presence_penalty: 0.5, frequency_penalty: 1 }],
    ['cerebras', { presence_penalty: 0.5, frequency_penalty: 1 }],
    ['moonshotai', { temperature: 0.5, top_p: 0.9, presence_penalty: 0.5, frequency_penalty: 1 }],
  ])('that %s refuses and that only tune or label are left out, and named', (id, fields) => {
    expect(sent(id, fields)).toEqual(body({}));
    expect([...fitOf(id, fields).dropped].sort()).toEqual(Object.keys(fields).sort());
    expect(sent('openai', fields)).toEqual(body(fields));
  });

  it.each([
    ['mistral', { logprobs: true }],
    ['mistral', { top_logprobs: 2 }],
    ['groq', { logprobs: true }],
    ['groq', { n: 2 }],
    ['moonshotai', { n: 2 }],
  ])('that %s refuses and the answer depends on send the request elsewhere: %j', (id, fields) => {
    const [name] = Object.keys(fields);
    expect(fitOf(id, fields)).toEqual({
      unsupported: { param: `/${name}`, message: `The provider does not take \`${name}\`.` },
      dropped: [],
    });
    expect(sent('openai', fields)).toEqual(body(fields));
  });

  it('that are refused but ask for nothing are left out', () => {
    const idle = { n: 1, logprobs: false, top_logprobs: 0, logit_bias: {} };
    expect(sent('groq', idle)).toEqual(body({}));
    expect(sent('mistral', { ...idle, logprobs: null })).toEqual(body({ n: 1 }));
  });
});

describe('messages', () => {
  const CALL = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const MARKED = {
    role: 'assistant',
    content: 'a',
    reasoning: 'hm',
    reasoning_content: 'hm',
    reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: 's' }],
    images: [],
    refusal: null,
    annotations: [],
    tool_calls: [{ ...CALL, extra_content: { google: { thought_signature: 's' } } }],
  };
  const { refusal, annotations } = MARKED;
  const PLAIN = { role: 'assistant', content: 'a', tool_calls: [CALL] };
  const ECHOED = { ...PLAIN, refusal, annotations };

  it.each([
    ['openai', ECHOED],
    ['mistral', PLAIN],
    ['groq', PLAIN],
    ['cerebras', PLAIN],
    ['xai', ECHOED],
    ['deepseek', ECHOED],
    ['moonshotai', ECHOED],
    ['fireworks', ECHOED],
    ['together', MARKED],
    ['openrouter', MARKED],
    ['acme', MARKED],
  ])('go to %s without what it refuses', (id, wanted) => {
    expect(message(id, MARKED)).toEqual([wanted]);
  });

  it.each([
    ['deepseek', { ...ECHOED, reasoning_content: 'hm' }],
    ['moonshotai', { ...ECHOED, reasoning_content: 'hm' }],
    ['fireworks', { ...ECHOED, reasoning_content: 'hm' }],
    ['cerebras', { ...PLAIN, reasoning: 'hm' }],
    ['groq', PLAIN],
    ['openai', ECHOED],
  ])('give a model of %s that reasons its thoughts back under its own name', (id, wanted) => {
    expect(message(id, MARKED, true)).toEqual([wanted]);
    const { reasoning_content: _, ...onlyOurs } = MARKED;
    expect(message(id, onlyOurs, true)).toEqual([wanted]);
    const { reasoning: __, ...onlyTheirs } = MARKED;
    expect(message(id, onlyTheirs, true)).toEqual([wanted]);
  });

  it.each(['deepseek', 'moonshotai'])(
    'tell %s a blank where a turn called tools and its thoughts are not ours',
    (id) => {
      expect(message(id, PLAIN, true)).toEqual([{ ...PLAIN, reasoning_content: ' ' }]);
      expect(message(id, { ...PLAIN, reasoning: '' }, true)).toEqual([{ ...PLAIN, reasoning_content: ' ' }]);
      expect(message(id, PLAIN)).toEqual([PLAIN]);
      expect(message(id, { role: 'assistant', content: 'a' }, true)).toEqual([{ role: 'assistant', content: 'a' }]);
      expect(message('fireworks', PLAIN, true)).toEqual([PLAIN]);
    },
  );

  it('have a system message for a developer one where that role is not known', () => {
    const developer = { role: 'developer', content: 'd' };
    const roles = [...PROVIDERS, 'acme'].filter((id) => JSON.stringify(message(id, developer)).includes('"system"'));
    expect(roles).toEqual(['mistral', 'deepseek', 'xai', 'fireworks', 'cerebras', 'moonshotai']);
    expect(message('mistral', developer)).toEqual([{ role: 'system', content: 'd' }]);
  });

  it.each(['mistral', 'groq'])('have no names for %s', (id) => {
    expect(message(id, { ...USER, name: 'Ann' })).toEqual([USER]);
    expect(message('openai', { ...USER, name: 'Ann' })).toEqual([{ ...USER, name: 'Ann' }]);
  });

  it('keep fields that nobody here knows, at any provider', () => {
    for (const id of PROVIDERS) expect(message(id, { ...USER, x_new: 1 })).toEqual([{ ...USER, x_new: 1 }]);
  });

  it("leave the caller's request as it was", () => {
    const request = Object.freeze({ model: 'm', messages: [Object.freeze(structuredClone(MARKED))], seed: 1 });
    const before = JSON.stringify(request);
    sent('mistral', request);
    expect(JSON.stringify(request)).toBe(before);
  });
});
