import { describe, expect, it } from 'vitest';
import { validator } from '../../src/lib/schemas.ts';
import { faultOf } from './faults.ts';

const validateChatRequest = validator('ChatRequest');

const user = { role: 'user', content: 'Hello' };
const request = (fields: Record<string, unknown> = {}): Record<string, unknown> => ({
  model: 'openai/gpt-x',
  messages: [user],
  ...fields,
});
const saying = (message: Record<string, unknown>): Record<string, unknown> => request({ messages: [message] });
const fault = (value: unknown): string | null => faultOf(validateChatRequest, value);

/** What the official SDKs send, every field at once. */
const everything = {
  model: 'gpt-x',
  messages: [
    { role: 'developer', content: 'Be brief.', name: 'policy' },
    { role: 'system', content: [{ type: 'text', text: 'Be kind.', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
        { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AAAA' } },
        { type: 'file', file: { file_data: 'AAAA', filename: 'a.pdf' } },
      ],
    },
    {
      role: 'assistant',
      content: null,
      reasoning: 'Let me look.',
      tool_calls: [
        { id: 'a', type: 'function', function: { name: 'look', arguments: '{}' }, extra_content: { google: {} } },
        { id: 'b', type: 'custom', custom: { name: 'run', input: 'ls' } },
      ],
    },
    { role: 'tool', tool_call_id: 'a', content: 'a cat' },
    { role: 'function', name: 'old', content: null },
    { role: 'assistant', function_call: { name: 'old', arguments: '{}' }, refusal: null, audio: { id: 'audio_1' } },
    user,
  ],
  audio: { format: 'mp3', voice: { id: 'voice_1' } },
  frequency_penalty: -2,
  function_call: { name: 'old' },
  functions: [{ name: 'old', parameters: { type: 'object' } }],
  logit_bias: { '50256': -100 },
  logprobs: true,
  max_completion_tokens: 100,
  max_tokens: 100,
  metadata: { purpose: 'test' },
  modalities: ['text', 'audio'],
  n: 8,
  parallel_tool_calls: false,
  prediction: { type: 'content', content: 'same' },
  presence_penalty: 2,
  prompt_cache_key: 'k',
  prompt_cache_retention: '24h',
  reasoning_effort: 'xhigh',
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: { type: 'object' }, strict: true } },
  safety_identifier: 's',
  seed: 7,
  service_tier: 'auto',
  stop: ['\n', 'END'],
  store: false,
  stream: true,
  stream_options: { include_usage: true, include_obfuscation: false },
  temperature: 0.5,
  tool_choice: { type: 'function', function: { name: 'look' } },
  tools: [
    {
      type: 'function',
      function: { name: 'look', description: 'Looks.', parameters: { type: 'object' }, strict: true },
    },
    { type: 'custom', custom: { name: 'run', format: { type: 'text' } } },
    { type: 'web_search' },
  ],
  top_logprobs: 20,
  top_p: 1,
  user: 'u',
  verbosity: 'low',
  web_search_options: { search_context_size: 'low' },
  unknown_field: { kept: true },
};

describe('a chat request is accepted', () => {
  it('with every field of the OpenAI request, and any other: which provider takes it is not for the schema to say', () => {
    const value = structuredClone(everything);
    expect(fault(value)).toBe(null);
    expect(value).toEqual(everything);
  });

  it('with null for every field but model and messages', () => {
    const optional = Object.keys(everything).filter((name) => name !== 'model' && name !== 'messages');
    expect(fault(request(Object.fromEntries(optional.map((name) => [name, null]))))).toBe(null);
  });

  it.each(['a', 'claude-4.5@2026:beta', 'acme/org/model_v1', 'x'.repeat(512)])('with the model %s', (model) => {
    expect(fault(request({ model }))).toBe(null);
  });

  it('with 20,000 messages', () => {
    expect(fault(request({ messages: Array.from({ length: 20_000 }, () => user) }))).toBe(null);
  });

  it('with keys named like parts of an object', () => {
    expect(
      fault(JSON.parse('{"model":"m","messages":[{"role":"user","content":""}],"__proto__":{},"constructor":1}')),
    ).toBe(null);
  });
});

describe('a chat request is refused', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['a message', saying({ ...user, x: 1 }), '/messages/0 additionalProperties'],
    [
      'a part',
      saying({ role: 'user', content: [{ type: 'text', text: '', x: 1 }] }),
      '/messages/0/content/0 additionalProperties',
    ],
    [
      'a tool',
      request({ tools: [{ type: 'function', function: { name: 'f' }, x: 1 }] }),
      '/tools/0 additionalProperties',
    ],
    [
      'a function',
      request({ tools: [{ type: 'function', function: { name: 'f', x: 1 } }] }),
      '/tools/0/function additionalProperties',
    ],
    ['the options of a stream', request({ stream_options: { x: 1 } }), '/stream_options additionalProperties'],
    [
      'the form of the answer',
      request({ response_format: { type: 'text', x: 1 } }),
      '/response_format additionalProperties',
    ],
  ])('when %s holds a field that is not known', (_, value, wanted) => {
    expect(fault(value)).toBe(wanted);
  });

  it.each<[string, unknown, string]>([
    ['is a list', [], ' type'],
    ['is null', null, ' type'],
    ['has no model', { messages: [user] }, ' required model'],
    ['has no messages', { model: 'm' }, ' required messages'],
    ['has a model that is no string', request({ model: 1 }), '/model type'],
    ['has an empty model', request({ model: '' }), '/model pattern'],
    ['has a model with a blank', request({ model: 'gpt x' }), '/model pattern'],
    ['has a model that ends in a line feed', request({ model: 'gpt-x\n' }), '/model pattern'],
    ['has a model of 513 characters', request({ model: 'x'.repeat(513) }), '/model pattern'],
    ['has no message', request({ messages: [] }), '/messages minItems'],
    ['has messages that are no list', request({ messages: { 0: user } }), '/messages type'],
    ['has a message that is text', request({ messages: ['Hello'] }), '/messages/0 type'],
    ['has a message without role', request({ messages: [user, { content: 'a' }] }), '/messages/1 required role'],
    ['has an unknown role', saying({ role: 'root', content: 'a' }), '/messages/0/role enum'],
    ['has a message without role or content', saying({}), '/messages/0 required content'],
    ['has a user message without content', saying({ role: 'user' }), '/messages/0 required content'],
    ['has content that is a number', saying({ role: 'user', content: 1 }), '/messages/0/content type'],
    ['has content that is an object', saying({ role: 'user', content: {} }), '/messages/0/content type'],
    ['has a part that is text', saying({ role: 'user', content: ['a'] }), '/messages/0/content/0 type'],
    [
      'has a part without type',
      saying({ role: 'user', content: [{ text: 'a' }] }),
      '/messages/0/content/0 required type',
    ],
    [
      'has a text part without text',
      saying({ role: 'user', content: [{ type: 'text' }] }),
      '/messages/0/content/0 required text',
    ],
    [
      'has an image by plain text',
      saying({ role: 'user', content: [{ type: 'image_url', image_url: 'data:' }] }),
      '/messages/0/content/0/image_url type',
    ],
    ['has a tool result without its call', saying({ role: 'tool', content: 'a' }), '/messages/0 required tool_call_id'],
    [
      'has a tool call without function',
      saying({ role: 'assistant', tool_calls: [{ id: 'a', type: 'function' }] }),
      '/messages/0/tool_calls/0 required function',
    ],
    [
      'has a custom tool call without input',
      saying({ role: 'assistant', tool_calls: [{ id: 'a', type: 'custom' }] }),
      '/messages/0/tool_calls/0 required custom',
    ],
    [
      'has a tool call without type',
      saying({ role: 'assistant', tool_calls: [{ id: 'a' }] }),
      '/messages/0/tool_calls/0 required type',
    ],
    ['asks for 0 choices', request({ n: 0 }), '/n minimum'],
    ['asks for 9 choices', request({ n: 9 }), '/n maximum'],
    ['asks for half a choice', request({ n: 1.5 }), '/n type'],
    ['has a temperature above 2', request({ temperature: 2.01 }), '/temperature maximum'],
    ['has a temperature that is text', request({ temperature: '1' }), '/temperature type'],
    ['asks for no tokens', request({ max_tokens: 0 }), '/max_tokens minimum'],
    [
      'asks for more tokens than there are',
      request({ max_completion_tokens: 1e300 }),
      '/max_completion_tokens maximum',
    ],
    ['streams by text', request({ stream: 'true' }), '/stream type'],
    ['has stream options that are a list', request({ stream_options: [] }), '/stream_options type'],
    ['has a tool without type', request({ tools: [{}] }), '/tools/0 required type'],
    ['has a function tool without function', request({ tools: [{ type: 'function' }] }), '/tools/0 required function'],
    [
      'has a response format without schema',
      request({ response_format: { type: 'json_schema' } }),
      '/response_format required json_schema',
    ],
    ['has a stop that is a number', request({ stop: [1] }), '/stop/0 type'],
    ['has metadata that is not text', request({ metadata: { a: 1 } }), '/metadata/a type'],
  ])('when it %s', (_, value, expected) => {
    expect(fault(value)).toBe(expected);
  });
});
