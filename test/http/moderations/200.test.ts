// POST /v1/moderations: an answered request.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { errorOf } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { judged, moderate, moderationOf } from '../../support/images.ts';
import { masked } from '../../support/masked.ts';
import { callRow, decisionRows } from '../../support/rows.ts';
import { failure, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const clock = new ManualClock('2026-11-21T12:00:00Z');
let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'sandbox-moderation'), { clock });
});

beforeEach(() => upstream.begin(judged()));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const NOTHING = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  reasoning_tokens: 0,
  prompt_tokens_details: {
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_creation_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    audio_tokens: 0,
    video_tokens: 0,
  },
  completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0, audio_tokens: 0 },
  cost: 0,
  cost_details: {
    upstream_inference_cost: 0,
    upstream_inference_prompt_cost: 0,
    upstream_inference_completions_cost: 0,
    total_cost: 0,
    input_cost: 0,
    output_cost: 0,
    cached_input_cost: 0,
    cache_write_input_cost: 0,
    request_cost: 0,
    web_search_cost: 0,
    image_input_cost: 0,
    image_output_cost: 0,
    audio_input_cost: 0,
    data_storage_cost: 0,
  },
};

const ATTEMPT = {
  provider: 'sandbox',
  model: 'sandbox-moderation',
  region: 'global',
  status_code: 200,
  error_type: 'none',
  succeeded: true,
  credentialSource: 'service',
  logId: '<call>',
};

describe('a moderation request', () => {
  it('gets a verdict, usage, cost and metadata', async () => {
    const answer = await moderate(gateway, { input: 'flag:violence/graphic' });

    expect([answer.status, masked(answer.json)]).toEqual([
      200,
      {
        id: expect.stringMatching(/^modr-[0-9a-f]{32}$/),
        model: 'sandbox-moderation',
        results: [
          {
            flagged: true,
            categories: expect.objectContaining({ violence: true, 'violence/graphic': true, hate: false }),
            category_scores: expect.objectContaining({ violence: 0.99, hate: 0.01 }),
            category_applied_input_types: expect.objectContaining({ violence: ['text'] }),
          },
        ],
        usage: NOTHING,
        metadata: {
          request_id: '<req>',
          requested_model: 'sandbox-moderation',
          used_model: 'sandbox-moderation',
          used_provider: 'sandbox',
          used_region: 'global',
          underlying_used_model: 'sandbox-moderation',
          log_id: '<call>',
          organization_id: '<org>',
          project_id: '<proj>',
          discount: 0,
          cached: false,
          routing: [ATTEMPT],
        },
      },
    ]);
    expect(moderationOf(answer).id).toBe(`modr-${callRow(gateway, answer).id.slice('call_'.length)}`);
  });

  it('is settled on its row, with its decision', async () => {
    const answer = await moderate(gateway, { input: 'x', model: 'omni-moderation-latest' });

    const row = callRow(gateway, answer);
    expect(masked(row)).toMatchObject({
      state: 'settled',
      action: 'moderation',
      requestedModel: 'omni-moderation-latest',
      cost: 0n,
      promptTokens: 0,
      usageEstimated: 0,
      providerId: 'sandbox',
      modelId: 'sandbox-moderation',
      attemptsJson: JSON.stringify([ATTEMPT]),
      statusCode: 200,
    });
    const decision = decisionRows(gateway).find(({ id }) => id === row.decisionId);
    expect(JSON.parse(decision?.inputJson ?? '')).toMatchObject({ action: 'moderation' });
  });

  it('names a model to no effect, except that it is the requested one in the metadata', async () => {
    const { model, metadata } = moderationOf(await moderate(gateway, { input: 'x', model: 'no-such-model' }));

    expect([model, metadata.requested_model, metadata.used_model]).toEqual([
      'sandbox-moderation',
      'no-such-model',
      'sandbox-moderation',
    ]);
  });

  it('gets one verdict for each text of a list, and one for a list of parts', async () => {
    const parts = [
      { type: 'text', text: 'murder' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ];
    const flags = async (input: unknown) =>
      moderationOf(await moderate(gateway, { input })).results.map(({ flagged }) => flagged);

    expect([await flags(['a fox', 'murder', 'a fox']), await flags(parts)]).toEqual([[false, true, false], [true]]);
  });

  it('gets metadata whose every value is a string, where it asks for that', async () => {
    const { metadata } = Object(
      masked((await moderate(gateway, { input: 'x' }, { headers: [['x-metadata-form', 'strings']] })).json),
    );

    expect({ ...metadata, routing: JSON.parse(metadata.routing) }).toEqual({
      request_id: '<req>',
      requested_model: 'sandbox-moderation',
      used_model: 'sandbox-moderation',
      used_provider: 'sandbox',
      used_region: 'global',
      underlying_used_model: 'sandbox-moderation',
      log_id: '<call>',
      organization_id: '<org>',
      project_id: '<proj>',
      discount: '0',
      cached: 'false',
      routing: [ATTEMPT],
    });
  });

  it('in a form that does not exist is 400', async () => {
    const answer = await moderate(gateway, { input: 'x' }, { headers: [['x-metadata-form', 'xml']] });

    expect([answer.status, errorOf(answer).message]).toEqual([
      400,
      'The header x-metadata-form must be object or strings.',
    ]);
  });

  it('is free to a key with a usage limit', async () => {
    const { token } = addKey(gateway, { usageLimit: '1' });

    const answer = await moderate(gateway, { input: 'x' }, { token });

    expect([answer.status, moderationOf(answer).usage.cost]).toEqual([200, 0]);
  });
});

describe('the model that the configuration names', () => {
  it("is sent the caller's request under its own id", async () => {
    const other = await startGateway({
      ...upstreamEnv('acme', upstream.origin, 'sandbox-moderation'),
      MODERATION_MODEL: 'acme/sandbox-moderation',
    });
    const body = { input: 'x', model: 'text-moderation-stable' };

    const { metadata, results } = moderationOf(await moderate(other, body));
    await other.close();

    expect(upstream.received.map(({ path, json: sent }) => [path, sent])).toEqual([
      ['/v1/moderations', { ...body, model: 'sandbox-moderation' }],
    ]);
    expect([results.length, metadata.used_provider, metadata.underlying_used_model]).toEqual([
      1,
      'acme',
      'upstream-moderation-2026',
    ]);
    expect('requested_provider' in metadata).toBe(false);
  });
});

describe('a first provider that fails', () => {
  it.each([
    ['a status 500', failure(500, 'x')],
    ['a verdict too many', judged(2)],
    ['no verdict', json({ results: [{}] })],
  ])('with %s is followed by the next one', async (_, reply) => {
    upstream.begin(reply);
    const env = upstreamEnv('acme', upstream.origin, 'sandbox-moderation', 'sandbox-moderation=0/0');
    const cheap = await startGateway(env, { clock });

    const { metadata, results } = moderationOf(await moderate(cheap, { input: 'murder' }));
    await cheap.close();

    expect(metadata.routing.map(({ provider, succeeded }) => [provider, succeeded])).toEqual([
      ['acme', false],
      ['sandbox', true],
    ]);
    expect(results[0]?.flagged).toBe(true);
  });
});
