import { describe, expect, it } from 'vitest';
import { type Mapping, TEXT_ONLY } from '../../../src/domain/model.ts';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import type { ImageRequest } from '../../../src/generated/types.ts';
import { openAiImages } from '../../../src/providers/openai/images.ts';
import type { Endpoint } from '../../../src/providers/wire/adapter.ts';
import { gathered } from '../answers.ts';

const ENDPOINT: Endpoint = {
  base: { origin: 'https://up.example', path: '/v1' },
  addresses: 'trusted',
  secret: 'sk-x',
};

const MAPPING: Mapping = {
  ...TEXT_ONLY,
  id: 'openrouter/gemini-2.5-flash-image',
  providerId: 'openrouter',
  modelId: 'gemini-2.5-flash-image',
  externalId: 'google/gemini-2.5-flash-image',
  custom: false,
  names: ['gemini-2.5-flash-image'],
  providerNames: ['openrouter'],
  prices: {},
  freeFlag: false,
  outputModalities: ['text', 'image'],
};

const build = (more: Partial<ImageRequest>) =>
  openAiImages.buildRequest({ request: { prompt: 'a fox', ...more }, mapping: MAPPING }, ENDPOINT);

const sent = (more: Partial<ImageRequest>): unknown => JSON.parse(build(more).body ?? '');

const parse = (answer: object) =>
  openAiImages.parseResponse(gathered(JSON.stringify(answer)), { request: { prompt: 'a fox' }, mapping: MAPPING });

const picture = (url: unknown) => ({ type: 'image_url', image_url: { url } });

const message = (images: unknown, more: object = {}) => ({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Here.', images }, finish_reason: 'stop' }],
  ...more,
});

const BASE = {
  model: 'google/gemini-2.5-flash-image',
  messages: [{ role: 'user', content: 'a fox' }],
  modalities: ['image', 'text'],
};

describe('a model that gives text and images', () => {
  it('is asked in a chat', () => {
    expect(build({}).path).toBe('/v1/chat/completions');
    expect(sent({ n: 1, user: 'u1', quality: 'high', size: 'auto' })).toEqual({ ...BASE, user: 'u1' });
  });

  it.each<[Partial<ImageRequest>, string]>([
    [{ aspect_ratio: '5:4', size: '1024x1024' }, '5:4'],
    [{ size: '1024x1024' }, '1:1'],
    [{ size: '1792x1024' }, '16:9'],
  ])('is told %j as the aspect ratio %s', (more, ratio) => {
    expect(sent(more)).toEqual({ ...BASE, image_config: { aspect_ratio: ratio } });
  });

  it.each<[string, Partial<ImageRequest>]>([
    ['makes one image at a time', { n: 2 }],
    ['gives no URLs', { response_format: 'url' }],
    ['width and a height', { size: 'large' }],
  ])('does not take what it cannot do: it %s', (words, more) => {
    expect(() => build(more)).toThrow(
      expect.objectContaining({ errorType: 'rejected', retryable: true, message: expect.stringContaining(words) }),
    );
  });

  it('answers with the pictures of its message', () => {
    const usage = { prompt_tokens: 2, completion_tokens: 1290, completion_tokens_details: { image_tokens: 1290 } };
    const images = [picture('data:image/png;base64,aGk='), picture('data:image/webp;base64,aGkh')];

    expect(parse(message(images, { model: 'gemini', usage }))).toEqual({
      model: 'gemini',
      images: [{ base64: 'aGk=' }, { base64: 'aGkh' }],
      usage: { ...NO_USAGE, promptTokens: 2, completionTokens: 1290, completionImageTokens: 1290, images: 2 },
      fields: {},
    });
    expect(parse(message(images)).usage).toBeUndefined();
  });

  const NONE = 'The provider sent no image.';
  const MALFORMED = 'The provider sent a malformed image.';

  it.each<[string, object, string]>([
    ['no choices', {}, 'The provider sent a malformed answer.'],
    ['text alone', message(undefined), NONE],
    ['an empty list', message([]), NONE],
    ['a choice that is none', { choices: ['x'] }, NONE],
    ['a part that is none', message(['x']), MALFORMED],
    ['an image that is no data', message([picture('https://images.example/1.png')]), MALFORMED],
    ['a picture that is a script', message([picture('data:text/html;base64,aGk=')]), MALFORMED],
  ])('is refused for %s', (_name, answer, text) => {
    expect(() => parse(answer)).toThrow(expect.objectContaining({ errorType: 'bad_response', message: text }));
  });
});
