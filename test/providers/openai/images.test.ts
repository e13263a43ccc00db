import { describe, expect, it } from 'vitest';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import type { ImageRequest } from '../../../src/generated/types.ts';
import { validator } from '../../../src/lib/schemas.ts';
import { openAiImages } from '../../../src/providers/openai/images.ts';
import type { Endpoint } from '../../../src/providers/wire/adapter.ts';
import { UpstreamError } from '../../../src/providers/wire/upstream-error.ts';
import { gathered, streamed } from '../answers.ts';

const validateImageRequest = validator('ImageRequest');

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
  openAiImages.buildRequest({ request: request(fields), mapping: to, namedFields: new Set(['x_new']) }, ENDPOINT);

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
  it('is the caller’s under the upstream’s model, with fields that the operator has named, and without null and stream', () => {
    const fields = { model: 'openai/dall-e-3', n: 2, size: null, other: null, x_new: { a: [1, null] }, stream: false };

    expect(build(fields, DALL_E)).toEqual({
      origin: 'https://up.example',
      path: '/v1/images/generations',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', authorization: 'Bearer sk-x' },
      body: '{"prompt":"a fox","model":"dall-e-3","n":2,"x_new":{"a":[1,null]}}',
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

describe('a request for drafts', () => {
  const DRAWS = { ...GPT_IMAGE, supportedParameters: ['n', 'partial_images', 'size'] };
  const plain = { prompt: 'a fox', model: 'gpt-image-1' };

  it('is a stream where the model gives them', () => {
    const built = build({ stream: true, partial_images: 2 }, DRAWS);

    expect([built.stream, built.headers?.accept, JSON.parse(built.body ?? '')]).toEqual([
      true,
      'text/event-stream',
      { ...plain, stream: true, partial_images: 2 },
    ]);
  });

  it.each([
    ['of several images', { stream: true, partial_images: 2, n: 2 }, DRAWS, { ...plain, n: 2 }],
    ['for none', { stream: true, partial_images: 0 }, DRAWS, plain],
    ['that is no stream', { partial_images: 2 }, DRAWS, plain],
    ['to a model that gives none', { stream: true, partial_images: 2 }, GPT_IMAGE, plain],
  ])('%s is one for the whole image', (_, fields, to, body) => {
    const built = build(fields, to);

    expect([built.stream, JSON.parse(built.body ?? '')]).toEqual([false, body]);
  });
});

describe('a stream of drafts', () => {
  const read = (...pieces: (object | string)[]) => {
    const drafts: unknown[] = [];
    const data = pieces.map((piece) => `data: ${typeof piece === 'string' ? piece : JSON.stringify(piece)}\n\n`);
    const parsed = openAiImages.partials?.parseStream(streamed(...data), (draft) => drafts.push(draft), 'sk-x');
    return { parsed, drafts };
  };
  const draft = { type: 'image_generation.partial_image', b64_json: 'YQ==', size: '1x1' };
  const whole = { type: 'image_generation.completed', b64_json: 'aGk=', size: '1x1' };

  it('gives each as it comes, passes over what it does not know, and ends with the image', async () => {
    const { parsed, drafts } = read(draft, { type: 'image_generation.new' }, draft, whole, 'not read');

    expect([await parsed, drafts]).toEqual([
      { model: undefined, images: [{ base64: 'aGk=' }], usage: { ...NO_USAGE, images: 1 }, fields: { size: '1x1' } },
      [0, 1].map((position) => ({ base64: 'YQ==', position, fields: { size: '1x1' } })),
    ]);
  });

  it.each<[string, (object | string)[], string]>([
    ['that is cut off', [draft], "The provider's stream was cut off."],
    ['without an image', [draft, '[DONE]'], 'The provider sent no image.'],
    ['of no JSON', ['<html>'], 'The provider sent a malformed event.'],
    ['of no objects', ['[]'], 'The provider sent a malformed event.'],
    ['with a draft that is no base64', [{ ...draft, b64_json: '<b>' }], 'The provider sent a malformed image.'],
    ['with an image that is no base64', [{ ...whole, b64_json: 1 }], 'The provider sent a malformed image.'],
    ['with four drafts', [draft, draft, draft, draft, whole], 'The provider sent too many partial images.'],
  ])('%s is refused', async (_, pieces, message) => {
    await expect(read(...pieces).parsed).rejects.toMatchObject({ errorType: 'bad_response', message });
  });

  it('never quotes the secret that the upstream echoes in an error', async () => {
    const { parsed } = read({ type: 'error', error: { message: 'bad key sk-x', code: 'server_error' } });

    await expect(parsed).rejects.toMatchObject({ message: expect.not.stringContaining('sk-x') });
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
      'text with the image',
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
