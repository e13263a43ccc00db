// POST /v1/images/generations: an answered request.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { chat, completionOf, errorOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, imagesOf, pictured, pngSize } from '../../support/images.ts';
import { masked } from '../../support/masked.ts';
import { callRow, decisionRows, keySums } from '../../support/rows.ts';
import { startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
let upstream: TestUpstream;
let gateway: TestGateway;
/** Without another provider, so that the sandbox costs its price. */
let plain: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = upstreamEnv('acme', upstream.origin, 'sandbox-image-max,sandbox-image-plus', 'sandbox-image-max=5/40');
  gateway = await startGateway(env, { clock: new ManualClock(NOW) });
  plain = await startGateway({}, { clock: new ManualClock(NOW) });
});

beforeEach(() => upstream.begin(pictured()));

afterAll(async () => {
  await gateway.close();
  await plain.close();
  await upstream.close();
});

const NO_COST = {
  cached_input_cost: 0,
  cache_write_input_cost: 0,
  request_cost: 0,
  web_search_cost: 0,
  image_input_cost: 0,
  audio_input_cost: 0,
  data_storage_cost: 0,
};

const SANDBOX_ANSWER = {
  created: NOW / 1000,
  output_format: 'png',
  size: '64x32',
  data: [{ b64_json: expect.any(String) }, { b64_json: expect.any(String) }],
  usage: {
    input_tokens: 3,
    input_tokens_details: { text_tokens: 3, image_tokens: 0 },
    output_tokens: 4,
    total_tokens: 7,
    prompt_tokens: 3,
    completion_tokens: 4,
    cost: 0.02,
    cost_details: {
      ...NO_COST,
      upstream_inference_cost: 0.02,
      upstream_inference_prompt_cost: 0,
      upstream_inference_completions_cost: 0.02,
      total_cost: 0.02,
      input_cost: 0,
      output_cost: 0,
      image_output_cost: 0.02,
    },
  },
  metadata: {
    request_id: '<req>',
    requested_model: 'sandbox-image-plus',
    used_model: 'sandbox-image-plus',
    used_provider: 'sandbox',
    used_region: 'global',
    underlying_used_model: 'sandbox-image-plus',
    log_id: '<call>',
    organization_id: '<org>',
    project_id: '<proj>',
    discount: 0,
    cached: false,
    routing: [
      {
        provider: 'sandbox',
        model: 'sandbox-image-plus',
        region: 'global',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        credentialSource: 'service',
        logId: '<call>',
      },
    ],
  },
};

describe('an image request', () => {
  it('that names no model goes to the default one, and gets pictures, usage, exact cost and metadata', async () => {
    const answer = await draw(plain, fox({ n: 2 }));

    expect([answer.status, masked(answer.json)]).toEqual([200, SANDBOX_ANSWER]);
    const { date, connection, 'content-length': length, ...headers } = answer.headers;
    expect(masked(headers)).toEqual({
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': '<req>',
      'x-decision-id': '<dec>',
      'x-policy-revision': expect.stringMatching(/^[0-9a-f]{12}\.0$/),
      'x-ratelimit-limit-requests': '600',
      'x-ratelimit-remaining-requests': expect.stringMatching(/^\d+$/),
      'x-ratelimit-reset-requests': expect.stringMatching(/^(1m0s|\d+s)$/),
    });
  });

  it('is settled on its row, with its decision, before it leaves', async () => {
    const answer = await draw(plain, fox({ n: 2, model: null }), { headers: [['x-forwarded-for', '192.0.2.7']] });

    const row = callRow(plain, answer);
    expect(masked(row)).toMatchObject({
      state: 'settled',
      action: 'image',
      clientAddress: '192.0.2.7',
      requestedModel: 'sandbox-image-plus',
      stream: 0,
      cost: 20_000_000_000n,
      promptTokens: 3,
      completionTokens: 4,
      usageEstimated: 0,
      providerId: 'sandbox',
      modelId: 'sandbox-image-plus',
      attemptsJson: JSON.stringify(SANDBOX_ANSWER.metadata.routing),
      statusCode: 200,
      errorCode: null,
    });
    expect(JSON.parse(row.costDetailsJson ?? '')).toEqual({ imageOutput: '0.02', total: '0.02' });
    const decision = decisionRows(plain).find(({ id }) => id === row.decisionId);
    expect(decision?.outcome).toBe('permit');
    expect(JSON.parse(decision?.inputJson ?? '')).toMatchObject({
      action: 'image',
      candidates: [{ id: 'sandbox/sandbox-image-plus' }],
    });
  });

  it('gets pictures of the size that it asks for', async () => {
    const { data } = imagesOf(await draw(gateway, fox({ n: 3, size: '80x48' })));
    const wide = imagesOf(await draw(gateway, fox({ size: null, aspect_ratio: '16:9' })));

    expect(data.map(({ b64_json: image }) => pngSize(image))).toEqual([
      [80, 48],
      [80, 48],
      [80, 48],
    ]);
    expect(wide.data.map(({ b64_json: image }) => pngSize(image))).toEqual([[1024, 576]]);
  });

  it('may pin its provider', async () => {
    const { metadata } = imagesOf(await draw(gateway, fox({ model: 'acme/sandbox-image-max' })));

    expect([metadata.requested_model, metadata.requested_provider, metadata.used_provider]).toEqual([
      'acme/sandbox-image-max',
      'acme',
      'acme',
    ]);
  });

  it('can be left to another model by the configuration', async () => {
    const other = await startGateway({ DEFAULT_IMAGE_MODEL: 'sandbox/sandbox-image-max' });
    const { metadata, usage } = imagesOf(await draw(other, fox()));
    await other.close();

    expect([metadata.requested_model, metadata.used_model, usage.cost]).toEqual([
      'sandbox/sandbox-image-max',
      'sandbox-image-max',
      0.04,
    ]);
  });
});

describe('the metadata', () => {
  it('has a string for every value where the caller asks for it, and the rest of the answer stays', async () => {
    const answer = await draw(plain, fox({ n: 2 }), { headers: [['x-metadata-form', 'strings']] });

    const { routing, ...metadata } = SANDBOX_ANSWER.metadata;
    const body = Object(masked(answer.json));
    expect(body).toEqual({
      ...SANDBOX_ANSWER,
      metadata: { ...metadata, discount: '0', cached: 'false', routing: expect.any(String) },
    });
    expect(JSON.parse(body.metadata.routing)).toEqual(routing);
  });

  it('in a form that does not exist is 400, and nothing is drawn', async () => {
    const answer = await draw(gateway, fox({ model: 'acme/sandbox-image-max' }), {
      headers: [['x-metadata-form', 'xml']],
    });

    expect([answer.status, errorOf(answer).message, upstream.received]).toEqual([
      400,
      'The header x-metadata-form must be object or strings.',
      [],
    ]);
  });
});

describe('another provider', () => {
  const model = 'acme/sandbox-image-max';

  it("is sent the caller's request under its own model id", async () => {
    const body = fox({ model, quality: 'high' });

    await draw(gateway, body);

    expect(upstream.received.map(({ path, headers, json }) => [path, headers.authorization, json])).toEqual([
      ['/v1/images/generations', 'Bearer secret-of-acme', { ...body, model: 'sandbox-image-max' }],
    ]);
  });

  it('is sent the fields that only tune the picture or label the request', async () => {
    const tuning = {
      complexity: 'high',
      frame_duration_ms: 100,
      safety_identifier: 'person-7',
      moderation: 'low',
      output_compression: 50,
    };
    await draw(gateway, fox({ model, ...tuning }));

    expect(upstream.received.map((call) => call.json)).toEqual([{ ...fox(), ...tuning, model: 'sandbox-image-max' }]);
  });

  it('is not sent a field that charges or names a model: the refusal says which', async () => {
    const refused = async (field: object) => {
      const answer = await draw(gateway, fox({ model, ...field }));
      return [answer.status, errorOf(answer).code, errorOf(answer).param, errorOf(answer).message];
    };

    expect(await refused({ frame_count: 16 })).toEqual([
      400,
      'unsupported_parameter',
      '/frame_count',
      '`frame_count` is not taken: each frame is charged, and its price is not known.',
    ]);
    expect(await refused({ svg: { model: 'gpt-5.5-pro' } })).toEqual([
      400,
      'unsupported_parameter',
      '/svg',
      '`svg` is not taken: it names another model, which no rule would judge, at a price that is not known.',
    ]);
    expect(await refused({ prompt_rewriter: { model: 'gpt-5.5-pro' } })).toEqual([
      400,
      'unsupported_parameter',
      '/prompt_rewriter',
      '`prompt_rewriter` is not taken: it names another model, which no rule would judge.',
    ]);
    expect(upstream.received).toEqual([]);
  });

  it('gives URLs, the prompt as it was drawn, its model and fields of its own', async () => {
    const url = 'https://images.example/1.png';
    upstream.begin(pictured({ data: [{ url, revised_prompt: 'a fox' }], model: 'max-2026', background: 'opaque' }));

    const answer = imagesOf(await draw(gateway, fox({ model })));

    const { usage, metadata, ...rest } = answer;
    expect([rest, metadata.underlying_used_model]).toEqual([
      { created: NOW / 1000, data: [{ url, revised_prompt: 'a fox' }], background: 'opaque' },
      'max-2026',
    ]);
  });

  it('is paid by its tokens where it charges those', async () => {
    const usage = { input_tokens: 50, output_tokens: 100, input_tokens_details: { text_tokens: 10, image_tokens: 40 } };
    upstream.begin(pictured({ usage }));

    const answer = await draw(gateway, fox({ model }));

    expect(imagesOf(answer).usage).toMatchObject({
      input_tokens: 50,
      input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      output_tokens: 100,
      total_tokens: 150,
      cost: 0.00425,
    });
    expect(callRow(gateway, answer).cost).toBe(4_250_000_000n);
  });

  it('that reports no tokens where those are charged leaves the cost unknown', async () => {
    const answer = imagesOf(await draw(gateway, fox({ model })));

    expect(answer.usage).toEqual({
      input_tokens: 0,
      input_tokens_details: { text_tokens: 0, image_tokens: 0 },
      output_tokens: 0,
      total_tokens: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      info: 'The images have no price per image, and the provider reported no tokens for them: the cost is unknown.',
    });
  });
});

describe('a key with a usage limit', () => {
  it('may use a model with a price for each picture, and is charged', async () => {
    const { token, id } = addKey(plain, { usageLimit: '1' });

    const answer = imagesOf(await draw(plain, fox({ n: 2 }), { token }));

    expect([answer.usage.cost, keySums(plain, id).usage]).toEqual([0.02, 20_000_000_000n]);
  });

  it('may not use one whose price is unknown', async () => {
    const { token } = addKey(gateway, { usageLimit: '1' });

    const answer = await draw(gateway, fox({ model: 'acme/sandbox-image-plus' }), { token });

    expect([answer.status, answer.json]).toMatchObject([400, { error: { code: 'invalid_request', param: '/model' } }]);
    expect(upstream.received).toEqual([]);
  });
});

describe('a chat with a model that draws', () => {
  it('shows the picture in the message, and charges for it', async () => {
    const answer = completionOf(await chat(plain, hello({ model: 'sandbox/sandbox-image-plus' })));

    expect(answer.choices[0]?.message.images).toEqual([
      { type: 'image_url', image_url: { url: expect.stringMatching(/^data:image\/png;base64,/) } },
    ]);
    expect(answer.usage.cost).toBe(0.01);
  });
});
