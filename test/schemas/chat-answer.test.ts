import { describe, expect, it } from 'vitest';
import type { ChatChunk, ChatCompletion, ErrorEnvelope } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { faultOf } from './faults.ts';

const validateChatChunk = validator('ChatChunk');
const validateChatCompletion = validator('ChatCompletion');
const validateErrorEnvelope = validator('ErrorEnvelope');

/** Every field that the specification lists. */
const completion: ChatCompletion = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_790_000_000,
  model: 'openai/gpt-x',
  choices: [
    {
      index: 0,
      finish_reason: 'tool_calls',
      message: {
        role: 'assistant',
        content: 'Look.',
        reasoning: 'A picture is asked for.',
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
        images: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }],
      },
    },
  ],
  usage: {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    reasoning_tokens: 2,
    prompt_tokens_details: {
      cached_tokens: 1,
      cache_write_tokens: 3,
      cache_creation_tokens: 3,
      cache_creation: { ephemeral_5m_input_tokens: 1, ephemeral_1h_input_tokens: 2 },
      audio_tokens: 0,
      video_tokens: 0,
    },
    completion_tokens_details: { reasoning_tokens: 2, image_tokens: 0, audio_tokens: 0 },
    cost: 0.000015,
    cost_details: {
      upstream_inference_cost: 0.000015,
      upstream_inference_prompt_cost: 0.00001,
      upstream_inference_completions_cost: 0.000005,
      total_cost: 0.000015,
      input_cost: 0.00001,
      output_cost: 0.000005,
      cached_input_cost: 0,
      cache_write_input_cost: 0,
      request_cost: 0,
      web_search_cost: 0,
      image_input_cost: 0,
      image_output_cost: 0,
      audio_input_cost: 0,
      data_storage_cost: 0,
    },
    info: 'estimated',
  },
  metadata: {
    request_id: 'req_1',
    requested_model: 'openai/gpt-x',
    requested_provider: 'openai',
    used_model: 'gpt-x',
    used_provider: 'openai',
    used_region: 'global',
    underlying_used_model: 'gpt-x-2026-01-01',
    log_id: 'call_1',
    organization_id: 'org_1',
    project_id: 'proj_1',
    discount: 0,
    cached: false,
    routing: [
      {
        provider: 'openai',
        model: 'gpt-x',
        region: 'global',
        error_type: 'connection',
        succeeded: false,
        credentialSource: 'service',
        logId: 'call_1',
      },
      {
        provider: 'openai',
        model: 'gpt-x',
        region: 'global',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        apiKeyHash: '0123456789abcdef',
        credentialSource: 'byok',
        providerKeyId: 'prov_1',
        providerKeyLabel: 'ours',
        logId: 'call_1',
      },
    ],
  },
};

const chunk: ChatChunk = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: 'openai/gpt-x',
  choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
};

const envelope: ErrorEnvelope = {
  error: { message: 'Access denied.', type: 'invalid_request_error', param: null, code: 'permission_denied' },
};

describe('a chat completion', () => {
  it('may carry every field of the specification', () => {
    expect(faultOf(validateChatCompletion, completion)).toBe(null);
  });

  it('keeps what an upstream adds', () => {
    expect(faultOf(validateChatCompletion, { ...completion, system_fingerprint: 'fp_1', x: { y: 1 } })).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['without usage', { ...completion, usage: undefined }, ' required usage'],
    ['without metadata', { ...completion, metadata: undefined }, ' required metadata'],
    [
      'with an unknown field in its metadata',
      { ...completion, metadata: { ...completion.metadata, x: 1 } },
      '/metadata additionalProperties',
    ],
    ['with a cost that is text', { ...completion, usage: { ...completion.usage, cost: '0.1' } }, '/usage/cost type'],
    [
      'with half a token',
      { ...completion, usage: { ...completion.usage, prompt_tokens: 0.5 } },
      '/usage/prompt_tokens type',
    ],
    [
      'with an unknown reason to end',
      { ...completion, choices: [{ ...completion.choices[0], finish_reason: 'function_call' }] },
      '/choices/0/finish_reason enum',
    ],
    ['that is a chunk', { ...completion, object: 'chat.completion.chunk' }, '/object const'],
  ])('is invalid %s', (_, value, expected) => {
    expect(faultOf(validateChatCompletion, value)).toBe(expected);
  });
});

describe('a chunk of a stream', () => {
  it.each<[string, ChatChunk]>([
    ['begin with the role', chunk],
    [
      'carry a fragment of a tool call',
      {
        ...chunk,
        choices: [
          { index: 1, delta: { tool_calls: [{ index: 0, function: { arguments: '{' } }] }, finish_reason: null },
        ],
      },
    ],
    [
      'end a choice with usage and metadata',
      {
        ...chunk,
        choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
        usage: completion.usage,
        metadata: completion.metadata,
      },
    ],
    ['say that usage comes later', { ...chunk, usage: null }],
    ['carry usage alone', { ...chunk, choices: [], usage: completion.usage, metadata: completion.metadata }],
  ])('may %s', (_, value) => {
    expect(faultOf(validateChatChunk, value)).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['without id', { ...chunk, id: undefined }, ' required id'],
    [
      'whose choice has no finish_reason',
      { ...chunk, choices: [{ index: 0, delta: {} }] },
      '/choices/0 required finish_reason',
    ],
    [
      'whose choice has a whole message',
      { ...chunk, choices: [{ index: 0, message: {}, finish_reason: null }] },
      '/choices/0 required delta',
    ],
  ])('is invalid %s', (_, value, expected) => {
    expect(faultOf(validateChatChunk, value)).toBe(expected);
  });
});

describe('an error envelope', () => {
  it('has all four keys', () => {
    expect(faultOf(validateErrorEnvelope, envelope)).toBe(null);
    for (const key of Object.keys(envelope.error)) {
      expect(faultOf(validateErrorEnvelope, { error: { ...envelope.error, [key]: undefined } })).toBe(
        `/error required ${key}`,
      );
    }
  });

  it('has no other', () => {
    expect(faultOf(validateErrorEnvelope, { error: { ...envelope.error, status: 403 } })).toBe(
      '/error additionalProperties',
    );
    expect(faultOf(validateErrorEnvelope, { ...envelope, message: '' })).toBe(' additionalProperties');
  });

  it('has a code that is text', () => {
    expect(faultOf(validateErrorEnvelope, { error: { ...envelope.error, code: 403 } })).toBe('/error/code type');
  });
});
