import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import type { ImageRequest } from '../../../src/generated/types.ts';
import { googleAdapter } from '../../../src/providers/google/google.ts';
import { gathered, sample } from '../answers.ts';
import { ENDPOINT, mapping } from '../google-samples.ts';

const MODEL = 'gemini-2.5-flash-image';
const { images } = googleAdapter;
if (images === undefined) throw new Error('no images');

const call = (fields: Partial<ImageRequest> & { google?: object } = {}) => ({
  request: { prompt: 'A lighthouse', ...fields },
  mapping: mapping(MODEL),
});
const sent = (fields: Partial<ImageRequest> & { google?: object }): unknown =>
  JSON.parse(images.buildRequest(call(fields), ENDPOINT).body ?? '');
const body = (generationConfig: object, more: object = {}) => ({
  contents: [{ role: 'user', parts: [{ text: 'A lighthouse' }] }],
  generationConfig: { responseModalities: ['IMAGE'], ...generationConfig },
  ...more,
});
const parse = (answer: object) => images.parseResponse(gathered(JSON.stringify(answer)), call());

describe('images', () => {
  it('are asked for as an answer that consists of one', () => {
    expect(images.buildRequest(call({ n: 1, size: 'auto', quality: 'high' }), ENDPOINT)).toEqual({
      origin: 'https://google.example',
      path: '/v1beta/models/gemini-2.5-flash-image:generateContent',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json', 'x-goog-api-key': 'AIzaTest' },
      body: JSON.stringify(body({})),
      stream: false,
      addresses: 'trusted',
    });
  });

  it.each([
    [{ aspect_ratio: '21:9' }, '21:9'],
    [{ aspect_ratio: '3:4', size: '1024x1024' }, '3:4'],
    [{ size: '1024x1024' }, '1:1'],
    [{ size: '1536x1024' }, '3:2'],
    [{ size: '1024x1536' }, '2:3'],
    [{ size: '1792x1024' }, '16:9'],
    [{ size: '1024x1792' }, '9:16'],
    [{ size: '640x500' }, '5:4'],
    [{ size: '2045x1000' }, '21:9'],
    [{ size: '9000x100' }, '21:9'],
  ])('of %j have the ratio %s', (fields, aspectRatio) => {
    expect(sent(fields)).toEqual(body({ imageConfig: { aspectRatio } }));
  });

  it('take the settings that a caller makes in the words of Google', () => {
    const google = { image_config: { image_size: '2K' }, safety_settings: [] };
    expect(sent({ size: '1024x1024', google })).toEqual(
      body({ imageConfig: { aspectRatio: '1:1', image_size: '2K' } }, { safetySettings: [] }),
    );
  });

  it.each([
    ['more than one', { n: 2 }],
    ['a size that is none', { size: 'large' }],
    ['a size of nothing', { size: '0x0' }],
  ])('of %s are left to another provider', (_name, fields) => {
    expect(() => sent(fields)).toThrow(expect.objectContaining({ errorType: 'rejected', retryable: true }));
  });

  it('are read without the drafts among the thoughts, and counted', () => {
    expect(images.parseResponse(gathered(sample('google/image.json')), call())).toEqual({
      model: 'gemini-3-pro-image-preview',
      images: [{ base64: 'aVZCT1J3MEs=' }],
      usage: { ...NO_USAGE, promptTokens: 12, completionTokens: 1298, completionImageTokens: 1290, images: 1 },
      fields: { responseId: 'iM9' },
    });
  });

  it.each([
    ['a blocked prompt', { promptFeedback: { blockReason: 'SAFETY' } }, 'The provider blocked the prompt: SAFETY.'],
    ['a filtered image', { candidates: [{ finishReason: 'IMAGE_SAFETY' }] }, 'The provider filtered the image.'],
  ])('that are not drawn for %s are refused for good', (_name, answer, message) => {
    expect(() => parse(answer)).toThrow(expect.objectContaining({ errorType: 'rejected', retryable: false, message }));
  });

  it.each([
    ['text only', { candidates: [{ content: { parts: [{ text: 'No.' }] }, finishReason: 'STOP' }] }],
    ['no image', { candidates: [{ finishReason: 'NO_IMAGE' }] }],
    ['nothing', {}],
  ])('that do not come with %s are a bad response', (_name, answer) => {
    expect(() => parse(answer)).toThrow(expect.objectContaining({ errorType: 'bad_response', retryable: true }));
  });
});
