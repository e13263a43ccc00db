// POST /v1/chat/completions: an answered request.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { chat, completionOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { masked } from '../../support/masked.ts';
import { callRow, decisionRows } from '../../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
let upstream: TestUpstream;
let gateway: TestGateway;
/** Without another provider, so that the sandbox costs its price. */
let plain: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = {
    ...upstreamEnv('acme', upstream.origin, 'large,org/deep', 'large=2/8'),
  };
  gateway = await startGateway(env, { clock: new ManualClock(NOW) });
  plain = await startGateway({}, { clock: new ManualClock(NOW) });
});

beforeEach(() => upstream.begin(json(completion('Hello'))));

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
  image_output_cost: 0,
  audio_input_cost: 0,
  data_storage_cost: 0,
};

const NO_DETAILS = {
  prompt_tokens_details: {
    cached_tokens: 0,
    cache_write_tokens: 0,
    cache_creation_tokens: 0,
    cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
    audio_tokens: 0,
    video_tokens: 0,
  },
  completion_tokens_details: { reasoning_tokens: 0, image_tokens: 0, audio_tokens: 0 },
};

const SANDBOX_ANSWER = {
  id: '<chatcmpl>',
  object: 'chat.completion',
  created: NOW / 1000,
  model: 'sandbox-paid',
  choices: [
    { index: 0, message: { role: 'assistant', content: 'You said: Hello' }, logprobs: null, finish_reason: 'stop' },
  ],
  usage: {
    prompt_tokens: 2,
    completion_tokens: 4,
    total_tokens: 6,
    reasoning_tokens: 0,
    ...NO_DETAILS,
    cost: 0.000018,
    cost_details: {
      ...NO_COST,
      upstream_inference_cost: 0.000018,
      upstream_inference_prompt_cost: 0.000002,
      upstream_inference_completions_cost: 0.000016,
      total_cost: 0.000018,
      input_cost: 0.000002,
      output_cost: 0.000016,
    },
  },
  metadata: {
    request_id: '<req>',
    requested_model: 'sandbox-paid',
    used_model: 'sandbox-paid',
    used_provider: 'sandbox',
    used_region: 'us',
    underlying_used_model: 'sandbox-paid',
    log_id: '<call>',
    organization_id: '<org>',
    project_id: '<proj>',
    discount: 0,
    cached: false,
    routing: [
      {
        provider: 'sandbox',
        model: 'sandbox-paid',
        region: 'us',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        credentialSource: 'service',
        logId: '<call>',
      },
    ],
  },
};

describe('a whole answer', () => {
  it('carries the message, usage, exact cost and metadata, and the ids of request and decision in its headers', async () => {
    const answer = await chat(plain, hello());

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

  it('names the same request, call, key and decision in body, headers and ledger', async () => {
    const answer = await chat(gateway, hello());

    const { metadata, id } = completionOf(answer);
    const row = callRow(gateway, answer);
    expect(metadata).toMatchObject({
      request_id: answer.headers['x-request-id'],
      log_id: row.id,
      organization_id: gateway.firstRun.organizationId,
      project_id: gateway.firstRun.projectId,
    });
    expect(id).toBe(`chatcmpl-${row.id.slice('call_'.length)}`);
    expect([row.keyId, row.memberId, row.decisionId]).toEqual([
      gateway.keyId,
      gateway.memberId,
      answer.headers['x-decision-id'],
    ]);
  });

  it('is settled on its row, with its decision, before it leaves', async () => {
    const answer = await chat(plain, hello(), { headers: [['x-forwarded-for', '192.0.2.7']] });

    const row = callRow(plain, answer);
    expect(masked(row)).toEqual({
      number: row.number,
      id: '<call>',
      organizationId: '<org>',
      projectId: '<proj>',
      keyId: '<key>',
      memberId: '<mem>',
      memberPeriodStartedAt: null,
      projectPeriodStartedAt: null,
      organizationPeriodStartedAt: null,
      priceUnknown: 0,
      decisionId: '<dec>',
      state: 'settled',
      action: 'chat',
      requestId: '<req>',
      clientRequestId: null,
      clientAddress: '192.0.2.7',
      tool: null,
      requestedModel: 'sandbox-paid',
      stream: 0,
      createdAt: NOW,
      reservation: 0n,
      periodStartedAt: null,
      settledAt: NOW,
      cost: 18_000_000n,
      costDetailsJson: '{"total":"0.000018","input":"0.000002","output":"0.000016"}',
      promptTokens: 2,
      completionTokens: 4,
      reasoningTokens: 0,
      cachedTokens: 0,
      cacheWriteTokens: 0,
      usageEstimated: 0,
      cached: 0,
      providerId: 'sandbox',
      modelId: 'sandbox-paid',
      providerKeyId: null,
      attemptsJson: JSON.stringify(SANDBOX_ANSWER.metadata.routing),
      statusCode: 200,
      errorCode: null,
    });
    const decision = decisionRows(plain).find(({ id }) => id === row.decisionId);
    expect([decision?.outcome, decision?.callId, decision?.violationsJson]).toEqual(['permit', row.id, '[]']);
  });

  it('has several choices when it is asked for them', async () => {
    const { choices, usage } = completionOf(await chat(gateway, hello({ n: 3 })));

    expect(choices.map(({ index, message }) => [index, message.content])).toEqual([
      [0, 'You said: Hello'],
      [1, 'You said (2): Hello'],
      [2, 'You said (3): Hello'],
    ]);
    expect(usage.completion_tokens).toBe(4 + 5 + 5);
  });

  it('calls the tools that the request offers', async () => {
    const parameters = { type: 'object', required: ['city'], properties: { city: { type: 'string' } } };
    const answer = await chat(
      gateway,
      hello({
        messages: [{ role: 'user', content: 'weather please' }],
        tools: [{ type: 'function', function: { name: 'weather', parameters } }],
      }),
    );

    const [choice] = completionOf(answer).choices;
    expect([choice?.finish_reason, choice?.message]).toEqual([
      'tool_calls',
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1_0', type: 'function', function: { name: 'weather', arguments: '{"city":"sandbox"}' } },
        ],
      },
    ]);
  });

  it('tells the length as the reason of an answer that was cut short', async () => {
    const [choice] = completionOf(await chat(gateway, hello({ max_completion_tokens: 2 }))).choices;

    expect([choice?.finish_reason, choice?.message.content]).toEqual(['length', 'You said']);
  });
});

describe('what is sent upstream', () => {
  it("is the caller's request under the provider's own model id and credential", async () => {
    const body = hello({ model: 'large', temperature: 0.5, chat_template_kwargs: { deep: [1, null] }, user: 'u1' });

    const answer = await chat(gateway, body, {
      headers: [
        ['cookie', 'a=b'],
        ['x-forwarded-for', '192.0.2.1'],
      ],
    });

    expect(answer.status).toBe(200);
    expect(upstream.received.map(({ path, json: sent }) => [path, sent])).toEqual([['/v1/chat/completions', body]]);
    expect(upstream.received[0]?.headers).toEqual({
      host: new URL(upstream.origin).host,
      connection: 'keep-alive',
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: 'Bearer secret-of-acme',
      'accept-encoding': 'identity',
      'content-length': String(Buffer.byteLength(upstream.received[0]?.text ?? '')),
    });
  });

  it('is re-serialised: never the bytes of the caller', async () => {
    await chat(gateway, ' {"messages" : [ {"role":"user","content":"\\u0041"} ],\n "model":"large"} ');

    expect(upstream.received[0]?.text).toBe('{"messages":[{"role":"user","content":"A"}],"model":"large"}');
  });
});

describe('an answer of an upstream', () => {
  it('is billed by the prices of its mapping and keeps the fields that nobody here knows', async () => {
    upstream.begin(json(completion('Hi', { system_fingerprint: 'fp_1', service_tier: 'default' })));

    const answer = await chat(gateway, hello({ model: 'large' }));

    const { system_fingerprint: fingerprint, service_tier: tier, usage, metadata, model } = completionOf(answer);
    expect([fingerprint, tier, model]).toEqual(['fp_1', 'default', 'large']);
    expect([usage.cost, metadata.underlying_used_model, metadata.used_provider]).toEqual([
      0.00006,
      'upstream-model-2026',
      'acme',
    ]);
    expect(metadata.routing).toEqual([
      {
        provider: 'acme',
        model: 'large',
        region: 'global',
        status_code: 200,
        error_type: 'none',
        succeeded: true,
        apiKeyHash: expect.stringMatching(/^[0-9a-f]{16}$/),
        credentialSource: 'service',
        logId: callRow(gateway, answer).id,
      },
    ]);
    expect(answer.text).not.toContain('secret-of-acme');
    expect(callRow(gateway, answer).cost).toBe(60_000_000n);
  });

  it('has no cost while the prices are unknown, and says so', async () => {
    const answer = await chat(gateway, hello({ model: 'acme/org/deep' }));

    const { usage, model, metadata } = completionOf(answer);
    expect(usage).toEqual({
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      reasoning_tokens: 0,
      ...NO_DETAILS,
      info: 'A price of this model is unknown, so the cost is too.',
    });
    expect([model, metadata.requested_model, metadata.requested_provider]).toEqual([
      'org--deep',
      'acme/org/deep',
      'acme',
    ]);
    expect(upstream.received[0]?.json).toMatchObject({ model: 'org/deep' });
  });

  it('is estimated, and marked so, when the provider reported no usage', async () => {
    upstream.begin(json(completion('Hello, world!', { usage: undefined })));

    const answer = await chat(gateway, hello({ model: 'large' }));

    const { usage } = completionOf(answer);
    expect([usage.prompt_tokens, usage.completion_tokens, usage.info]).toEqual([
      8, // as OpenAI counts it: 3 for the chat, 4 for a message, 1 for its text
      4,
      'The provider reported no usage: token counts are estimated.',
    ]);
    expect(callRow(gateway, answer).usageEstimated).toBe(1);
  });

  it.each([
    ['thoughts', { content: null, reasoning_content: 'Hello, world!' }, 4],
    ['no thoughts where they are no text', { content: 'Hello', reasoning: { effort: 1 } }, 1],
  ])('is estimated of all that was said: %s', async (_, message, tokens) => {
    const choices = [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }];
    upstream.begin(json(completion('', { usage: undefined, choices })));

    const answer = await chat(gateway, hello({ model: 'large' }));

    expect(callRow(gateway, answer)).toMatchObject({ statusCode: 200, completionTokens: tokens });
  });

  it('names the requested provider only when the request pinned it', async () => {
    const pinned = completionOf(await chat(gateway, hello({ model: 'sandbox/sandbox-free' })));
    const free = completionOf(await chat(gateway, hello({ model: 'sandbox-free' })));

    expect([pinned.metadata.requested_provider, pinned.model, pinned.usage.cost]).toEqual([
      'sandbox',
      'sandbox-free',
      0,
    ]);
    expect('requested_provider' in free.metadata).toBe(false);
  });
});

describe('the request id of the caller', () => {
  it('is kept and returned in addition to ours when it is well formed', async () => {
    const own = `Own.${'x'.repeat(58)}_-`;

    const answer = await chat(gateway, hello(), { headers: [['x-request-id', own]] });

    expect(answer.headers['x-client-request-id']).toBe(own);
    expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-f]{32}$/);
    expect(callRow(gateway, answer).clientRequestId).toBe(own);
  });

  it.each(['', 'has space', 'x'.repeat(65), 'slash/', 'é'])('is ignored when it is %j', async (own) => {
    const answer = await chat(gateway, hello(), { headers: [['x-request-id', Buffer.from(own).toString('latin1')]] });

    expect([answer.status, 'x-client-request-id' in answer.headers]).toEqual([200, false]);
    expect(callRow(gateway, answer).clientRequestId).toBeNull();
  });
});
