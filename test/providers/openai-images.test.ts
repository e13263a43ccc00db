import { describe, expect, it } from 'vitest';
import { type Mapping, TEXT_ONLY } from '../../src/domain/model.ts';
import { NO_USAGE } from '../../src/domain/usage.ts';
import type { ImageRequest } from '../../src/generated/types.ts';
import { validateImageRequest } from '../../src/generated/validators.js';
import type { Endpoint } from '../../src/providers/adapter.ts';
import { openAiImages } from '../../src/providers/openai-images.ts';
import { UpstreamError } from '../../src/providers/upstream-error.ts';
import { gathered } from './answers.ts';

const ENDPOINT: Endpoint = {
  base: { origin: 'https://up.example', path: '/v1' },
  addresses: 'trusted',
  secret: 'sk-x',
};

const mapping = (externalId: string, more: Partial<Mapping> = {}): Mapping => ({
  ...TEXT_ONLY,
  id: `openai/${externalId}`,
  providerId: 'openai',
  modelId: externalId,
  externalId,
  custom: false,
  names: [externalId],
  providerNames: ['openai'],
  prices: {},
  freeFlag: false,
  outputModalities: ['image'],
  ...more,
});

const DALL_E = mapping('dall-e-3');
const GPT_IMAGE = mapping('gpt-image-1');
const UNKNOWN = mapping('flux', { id: 'acme/flux', providerId: 'acme' });

function request(fields: object): ImageRequest {
  const parsed: unknown = JSON.parse(JSON.stringify({ prompt: 'a fox', ...fields }));
  if (!validateImageRequest(parsed)) throw new Error('no image request');
  return parsed;
}

const build = (fields: object, to: Mapping) =>
  openAiImages.buildRequest({ request: request(fields), mapping: to }, ENDPOINT);

const sent = (fields: object, to: Mapping): unknown => JSON.parse(build(fields, to).body ?? '');

function refused(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    if (error instanceof UpstreamError) return [error.errorType, error.retryable, error.message];
    throw error;
  }
  return undefined;
}

const parse = (answer: unknown) =>
  openAiImages.parseResponse(gathered(typeof answer === 'string' ? answer : JSON.stringify(answer)), {
    request: request({}),
    mapping: GPT_IMAGE,
  });

describe('the request', () => {
  it('is the caller’s under the upstream’s model, unknown fields at any depth with it, and without stream', () => {
    const fields = { model: 'openai/dall-e-3', n: 2, size: null, x_new: { a: [1, null] }, stream: false };

    expect(build(fields, DALL_E)).toEqual({
      origin: 'https://up.example',
      path: '/v1/images/generations',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: 'Bearer sk-x' },
      body: '{"prompt":"a fox","model":"dall-e-3","n":2,"size":null,"x_new":{"a":[1,null]}}',
      stream: false,
      addresses: 'trusted',
    });
  });

  it.each<[string, string | null, Mapping, unknown]>([
    ['dall-e takes it', 'b64_json', DALL_E, 'b64_json'],
    ['dall-e takes a URL', 'url', DALL_E, 'url'],
    ['gpt-image refuses it', 'b64_json', GPT_IMAGE, undefined],
    ['gpt-image through a reseller too', 'b64_json', mapping('openai/gpt-image-1-mini'), undefined],
    ['so does the model of the chat', 'b64_json', mapping('chatgpt-image-latest'), undefined],
    ['null is none', null, DALL_E, undefined],
  ])('carries response_format where it is taken: %s', (_name, form, to, wanted) => {
    expect(Object(sent({ response_format: form }, to)).response_format).toBe(wanted);
  });

  it('carries aspect_ratio unless the provider is known not to take it', () => {
    const knows = (...supportedParameters: string[]) => ({ ...UNKNOWN, supportedParameters });
    const ratio = { aspect_ratio: '16:9' };

    expect([sent(ratio, UNKNOWN), sent(ratio, knows('aspect_ratio'))]).toEqual([
      { prompt: 'a fox', model: 'flux', aspect_ratio: '16:9' },
      { prompt: 'a fox', model: 'flux', aspect_ratio: '16:9' },
    ]);
    expect(sent({ aspect_ratio: null }, GPT_IMAGE)).toEqual({ prompt: 'a fox', model: 'gpt-image-1' });
    expect(refused(() => build(ratio, knows('size')))).toEqual([
      'rejected',
      true,
      'acme/flux takes no aspect_ratio: ask for a size.',
    ]);
    expect(refused(() => build(ratio, GPT_IMAGE))).toMatchObject(['rejected', true, expect.any(String)]);
  });

  it('is refused where a URL is wanted of a model that gives none', () => {
    expect(refused(() => build({ response_format: 'url' }, GPT_IMAGE))).toEqual([
      'rejected',
      true,
      'openai/gpt-image-1 gives no URLs: ask for b64_json.',
    ]);
  });
});

describe('the answer', () => {
  it('of gpt-image: base64, tokens of text and image, and other fields', () => {
    const answer = {
      created: 1713833628,
      background: 'transparent',
      output_format: 'png',
      quality: 'high',
      size: '1024x1024',
      data: [{ b64_json: 'aGk=' }],
      usage: {
        total_tokens: 100,
        input_tokens: 50,
        output_tokens: 50,
        input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      },
    };

    expect(parse(answer)).toEqual({
      model: undefined,
      images: [{ base64: 'aGk=' }],
      usage: {
        ...NO_USAGE,
        promptTokens: 50,
        promptImageTokens: 40,
        completionTokens: 50,
        completionImageTokens: 50,
        images: 1,
      },
      fields: { background: 'transparent', output_format: 'png', quality: 'high', size: '1024x1024' },
    });
  });

  it('of dall-e: URLs with the prompt that was really drawn, no tokens, as many images as there are', () => {
    const url = 'https://images.example/1.png';
    const answer = {
      created: 1589478378,
      data: [
        { url, revised_prompt: 'a red fox' },
        { url, b64_json: null },
      ],
    };

    expect(parse(answer)).toEqual({
      model: undefined,
      images: [{ url, revisedPrompt: 'a red fox' }, { url }],
      usage: { ...NO_USAGE, images: 2 },
      fields: {},
    });
  });

  it.each<[string, object, object]>([
    [
      'text beside the image',
      { input_tokens: 5, output_tokens: 50, output_tokens_details: { image_tokens: 40, text_tokens: 10 } },
      { promptTokens: 5, completionTokens: 50, completionImageTokens: 40 },
    ],
    [
      'what was read from a cache',
      { input_tokens: 5, output_tokens: 0, input_tokens_details: { cached_tokens: 3 } },
      { promptTokens: 5, cachedTokens: 3 },
    ],
    [
      'the names of chats',
      { prompt_tokens: 5, completion_tokens: 7, completion_tokens_details: { image_tokens: 7 } },
      { promptTokens: 5, completionTokens: 7, completionImageTokens: 7 },
    ],
    ['counts that are none', { input_tokens: -5, output_tokens: 'many' }, {}],
  ])('has its usage with %s', (_name, usage, wanted) => {
    expect(parse({ data: [{ b64_json: 'aGk=' }], usage }).usage).toEqual({ ...NO_USAGE, ...wanted, images: 1 });
  });

  it('names the model where the upstream does', () => {
    expect(parse({ data: [{ b64_json: 'aGk=' }], model: 'gpt-image-1-2025' }).model).toBe('gpt-image-1-2025');
  });

  const MALFORMED = 'The provider sent a malformed answer.';
  const NO_IMAGE = 'The provider sent a malformed image.';

  it.each<[string, unknown, string]>([
    ['no JSON', '{', MALFORMED],
    ['no object', [], MALFORMED],
    ['no data', { created: 1 }, MALFORMED],
    ['no image', { data: [] }, 'The provider sent no image.'],
    ['too many images', { data: Array(11).fill({ b64_json: 'aGk=' }) }, 'The provider sent too many images.'],
    [
      'an error in disguise',
      { error: { message: 'sk-x' } },
      'The provider reported an error inside a successful answer.',
    ],
    ['an item that is none', { data: ['aGk='] }, NO_IMAGE],
    ['an empty item', { data: [{}] }, NO_IMAGE],
    ['an empty image', { data: [{ b64_json: '' }] }, NO_IMAGE],
    ['what is no base64', { data: [{ b64_json: '<svg>', url: 'https://x.example' }] }, NO_IMAGE],
    ['a script for a URL', { data: [{ url: 'javascript:alert(1)' }] }, NO_IMAGE],
  ])('is refused for %s', (_name, answer, message) => {
    expect(refused(() => parse(answer))).toEqual(['bad_response', true, message]);
  });
});
