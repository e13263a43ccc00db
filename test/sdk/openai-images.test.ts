// The `openai` package as its users have it, for images and moderations.
import OpenAI, { BadRequestError, InternalServerError, PermissionDeniedError } from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addRule, removeRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { pngSize } from '../support/images.ts';

let gateway: TestGateway;
let client: OpenAI;

beforeAll(async () => {
  gateway = await startGateway();
  client = new OpenAI({ apiKey: gateway.firstRun.gatewayKey, baseURL: `${gateway.origin}/v1` });
});

afterAll(() => gateway.close());

const thrown = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('images.generate', () => {
  it('gives PNG files of the size asked for, with usage and cost', async () => {
    const {
      data = [],
      usage,
      _request_id,
    } = await client.images.generate({
      model: 'sandbox-image-max',
      prompt: 'a red fox',
      n: 2,
      size: '1024x1536',
    });

    expect(data.map(({ b64_json: image }) => pngSize(image))).toEqual([
      [1024, 1536],
      [1024, 1536],
    ]);
    expect(usage).toMatchObject({ input_tokens: 3, output_tokens: 12_288, total_tokens: 12_291, cost: 0.08 });
    expect(_request_id).toMatch(/^req_[0-9a-f]{32}$/);
  });

  it('streams drafts, then the image', async () => {
    const stream = await client.images.generate({
      model: 'sandbox-image-max',
      prompt: 'a red fox',
      size: '1024x1536',
      stream: true,
      partial_images: 2,
    });
    const events: [string, unknown][] = [];
    for await (const event of stream) events.push([event.type, pngSize(event.b64_json)]);

    expect(events).toEqual([
      ['image_generation.partial_image', [1024, 1536]],
      ['image_generation.partial_image', [1024, 1536]],
      ['image_generation.completed', [1024, 1536]],
    ]);
  });

  it('draws with the default model where none is named', async () => {
    const { data } = await client.images.generate({ prompt: 'a red fox' });

    expect(data?.map(({ b64_json: image }) => pngSize(image))).toEqual([[1024, 1024]]);
  });

  it('throws the errors of the package', async () => {
    const draw = (prompt: string, model = 'sandbox-image-plus') => thrown(client.images.generate({ model, prompt }));
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-image-max'] } });
    const denied = await draw('x', 'sandbox-image-max');
    removeRule(gateway, 'key', id);

    expect(denied).toBeInstanceOf(PermissionDeniedError);
    expect(await draw('x', 'sandbox-paid')).toBeInstanceOf(BadRequestError);
    expect(await draw('fail:500')).toBeInstanceOf(InternalServerError);
  });
});

describe('moderations.create', () => {
  it('gives one verdict for each input', async () => {
    const { model, results } = await client.moderations.create({
      model: 'omni-moderation-latest',
      input: ['a red fox', 'flag:self-harm/intent'],
    });

    expect([model, results.map(({ flagged }) => flagged), results[1]?.categories['self-harm/intent']]).toEqual([
      'sandbox-moderation',
      [false, true],
      true,
    ]);
  });
});
