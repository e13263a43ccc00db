import { describe, expect, it } from 'vitest';
import type { Model, ModelPricing } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { faultOf } from './faults.ts';

const validateModelList = validator('ModelList');

const pricing: ModelPricing = {
  prompt: '0.0000025',
  completion: '0.00001',
  image: '0',
  input_audio: '0.00004',
  input_audio_cache_read: '0.0000025',
  output_audio: '0.00008',
  per_second: { '1280x720': '0.1' },
  per_image: { default: '0.04' },
  request: '0',
  input_cache_read: '0.00000125',
  input_cache_write: '0.000003125',
  input_cache_write_1h: '0.000005',
  ocr_page: '0.001',
  input_audio_hour: '0.1',
};

/** Every field that the specification lists, and the two for SDKs. */
const model: Model = {
  id: 'gpt-x',
  object: 'model',
  owned_by: 'openai',
  name: 'gpt-x',
  display_name: 'GPT X',
  aliases: ['gpt-x-latest'],
  created: 1_790_000_000,
  description: 'A model.',
  family: 'openai',
  architecture: { input_modalities: ['text'], output_modalities: ['text'], tokenizer: 'GPT' },
  top_provider: { is_moderated: true },
  providers: [
    {
      providerId: 'openai',
      externalId: 'gpt-x-2026-01-01',
      supportedVideoSizes: ['1280x720'],
      supportsVideoAudio: true,
      supportsVideoWithoutAudio: false,
      pricing,
      streaming: true,
      vision: true,
      realtime: false,
      cancellation: true,
      tools: true,
      parallelToolCalls: true,
      reasoning: true,
      reasoning_efforts: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
      min_cacheable_tokens: 1024,
      max_output: 128_000,
      stability: 'stable',
    },
  ],
  pricing: { ...pricing, web_search: '0.01', internal_reasoning: '0.00001' },
  context_length: 400_000,
  max_output: 128_000,
  per_request_limits: { prompt_tokens: '1000' },
  supported_parameters: ['temperature'],
  json_output: true,
  structured_outputs: true,
  free: false,
  deprecated_at: '2027-01-01T00:00:00.000Z',
  deactivated_at: '2027-06-01T00:00:00.000Z',
  stability: 'stable',
};

const listOf = (...data: unknown[]): unknown => ({ object: 'list', data });

describe('a model list', () => {
  it('may carry every field of the specification', () => {
    expect(faultOf(validateModelList, listOf(model))).toBe(null);
  });

  it('may be empty', () => {
    expect(faultOf(validateModelList, listOf())).toBe(null);
  });

  it.each<[string, unknown, string]>([
    ['without object', { data: [] }, ' required object'],
    ['with null for what is not known', listOf({ ...model, context_length: null }), '/data/0/context_length type'],
    ['with a price that is a number', listOf({ ...model, pricing: { prompt: 0.1 } }), '/data/0/pricing/prompt type'],
    ['with an unknown field', listOf({ ...model, x: 1 }), '/data/0 additionalProperties'],
    ['with an unknown stability', listOf({ ...model, stability: 'good' }), '/data/0/stability enum'],
    ['without owner', listOf({ ...model, owned_by: undefined }), '/data/0 required owned_by'],
    [
      'with a mapping without provider',
      listOf({ ...model, providers: [{}] }),
      '/data/0/providers/0 required providerId',
    ],
  ])('is invalid %s', (_, value, expected) => {
    expect(faultOf(validateModelList, value)).toBe(expected);
  });
});
