// POST /v1/images/generations: a body that is no image request, a model that makes none, or what no provider takes.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chat, errorOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox } from '../../support/images.ts';
import { callRow, callRows } from '../../support/rows.ts';
import { failure, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'sandbox-image-plus,large'));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const invalid = (message: unknown, param: string | null = null) => ({
  error: { message, type: 'invalid_request_error', param, code: 'invalid_request' },
});

describe('a request that is no image request', () => {
  it('says what may stand there, null too', async () => {
    expect((await draw(gateway, fox({ response_format: 'png' }))).json).toEqual(
      invalid('/response_format ("png") must be one of b64_json, url, null.', '/response_format'),
    );
  });

  it.each<[string, string, unknown]>([
    ['/prompt', 'a missing prompt', { model: 'sandbox-image-plus' }],
    ['/prompt', 'an empty prompt', fox({ prompt: '' })],
    ['/prompt', 'a prompt that is no text', fox({ prompt: ['a fox'] })],
    ['/model', 'a malformed model', fox({ model: 'a fox' })],
    ['/n', 'no picture', fox({ n: 0 })],
    ['/n', 'more than ten pictures', fox({ n: 11 })],
    ['/size', 'a size that is no text', fox({ size: 64 })],
    ['/response_format', 'an unknown form', fox({ response_format: 'png' })],
    ['/aspect_ratio', 'an aspect ratio in words', fox({ aspect_ratio: 'wide' })],
    ['/stream', 'a stream that is no flag', fox({ stream: 1 })],
    ['/partial_images', 'more drafts than three', fox({ stream: true, partial_images: 4 })],
    ['', 'a list', [fox()]],
    ['', 'null', null],
  ])('names the place of its first fault: %s for %s', async (param, _, body) => {
    const answer = await draw(gateway, body);

    expect([answer.status, answer.json]).toEqual([400, invalid(expect.any(String), param)]);
    expect(callRows(gateway)).toEqual([]);
  });
});

describe('a model for something else', () => {
  it.each(['sandbox-paid', 'sandbox-moderation', 'sandbox/sandbox-free', 'large'])(
    'is named, and decided on by nobody: %s',
    async (model) => {
      const answer = await draw(gateway, fox({ model }));

      expect([answer.status, answer.json]).toEqual([
        400,
        invalid(`The model \`${model}\` does not make images.`, '/model'),
      ]);
      expect(['x-decision-id' in answer.headers, callRows(gateway)]).toEqual([false, []]);
    },
  );

  it('is refused to chats as well: the one that moderates', async () => {
    const answer = await chat(gateway, hello({ model: 'sandbox-moderation' }));

    expect([answer.status, answer.json]).toEqual([
      400,
      invalid('The model `sandbox-moderation` does not complete chats.', '/model'),
    ]);
  });
});

describe('what the provider rejects', () => {
  it.each([
    ['a size out of its bounds', { size: '8x8' }, 'The sandbox draws sides of 16 to 2048 pixels.'],
    ['a URL', { response_format: 'url' }, 'The sandbox keeps no images, so it gives no URLs: ask for b64_json.'],
    ['another file format', { output_format: 'webp' }, 'The sandbox draws PNG only.'],
  ])('is a 400 with its words, tried nowhere else: %s', async (_, more, message) => {
    upstream.begin(failure(500, 'x'));

    const answer = await draw(gateway, fox(more));

    expect([answer.status, errorOf(answer).message]).toEqual([400, `The provider rejected the request: ${message}`]);
    const { statusCode, errorCode, cost, providerId } = callRow(gateway, answer);
    expect([statusCode, errorCode, cost, providerId]).toEqual([400, 'invalid_request', 0n, null]);
    expect(upstream.received).toEqual([]);
  });
});
