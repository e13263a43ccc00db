// POST /v1/images/generations: a field that the model cannot honour is said, never lost in silence (issue 12, 13).
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { errorOf } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw } from '../../support/images.ts';
import { json, startUpstream, type TestUpstream } from '../../support/upstream.ts';

const GEMINI = 'google/gemini-2.5-flash-image';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ GOOGLE_API_KEY: 'a', GOOGLE_BASE_URL: upstream.origin });
});

beforeEach(() => {
  const parts = [{ inlineData: { mimeType: 'image/png', data: 'aGk=' } }];
  upstream.begin(json({ candidates: [{ content: { parts }, finishReason: 'STOP' }] }));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

it.each([
  [{ quality: 'high', background: 'transparent', style: 'vivid' }, 'background, quality, style'],
  [
    { output_format: 'webp', output_compression: 50, moderation: 'low' },
    'moderation, output_compression, output_format',
  ],
  [{ size: '9000x100', user: 'u' }, 'size, user'],
])('%j is left out, or only roughly honoured, and named in a header', async (fields, named) => {
  const answer = await draw(gateway, { model: GEMINI, prompt: 'a fox', ...fields });

  expect([answer.status, answer.headers['x-dropped-parameters']]).toEqual([200, named]);
});

it('what the model does anyway is not named', async () => {
  const fields = { quality: 'auto', size: 'auto', output_format: 'png', aspect_ratio: '16:9', style: null };
  const answer = await draw(gateway, { model: GEMINI, prompt: 'a fox', ...fields });

  expect([answer.status, answer.headers['x-dropped-parameters']]).toEqual([200, undefined]);
});

it('a URL is refused by a provider that gives none', async () => {
  const answer = await draw(gateway, { model: GEMINI, prompt: 'a fox', response_format: 'url' });

  expect([answer.status, errorOf(answer).message, upstream.received]).toEqual([
    400,
    'This provider gives no URLs: ask for b64_json.',
    [],
  ]);
});
