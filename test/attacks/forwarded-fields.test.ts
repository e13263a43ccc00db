// Threat: a field of the request reaches an upstream that nobody judged, and names another model, a longer answer or a higher price.
// Defence: one table for each wire format; what no table knows is 400 and is never sent.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ChatRequest } from '../../src/generated/types.ts';
import { anthropicAdapter } from '../../src/providers/anthropic/anthropic.ts';
import { googleAdapter } from '../../src/providers/google/google.ts';
import { openAiAdapterFor } from '../../src/providers/openai/openai.ts';
import { mappingOf } from '../providers/answers.ts';
import { bearer, chat, errorOf, hello, JSON_TYPE } from '../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';
import { draw, pictured } from '../support/images.ts';
import { addOwnModels, FLAT } from '../support/own-models.ts';
import { send } from '../support/request.ts';
import { callRows } from '../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=1/10'),
    UPSTREAM_ACME_FIELDS: 'x_trace, x_style',
    ...upstreamEnv('other', upstream.origin, 'large', 'large=2/20'),
    ...upstreamEnv('painter', upstream.origin, 'sandbox-image-max', 'sandbox-image-max=5/40'),
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
  });
});

beforeEach(() => upstream.begin(json(completion('Hello'))));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** What attackers have tried, and their like, each with a value that some server understands. */
const SMUGGLED: readonly [string, unknown][] = [
  ['extra_body', { model: 'gpt-5', models: ['gpt-5'] }],
  ['models', ['gpt-5']],
  ['fallbacks', [{ model: 'gpt-5' }]],
  ['fallback_models', ['gpt-5']],
  ['context_window_fallbacks', [{ large: ['gpt-5'] }]],
  ['content_policy_fallbacks', [{ large: ['gpt-5'] }]],
  ['preset', '@preset/gpt-5'],
  ['route', 'fallback'],
  ['provider', { order: ['expensive'], sort: 'throughput' }],
  ['plugins', [{ id: 'web', engine: 'native' }]],
  ['engine', 'gpt-5'],
  ['model_name', 'gpt-5'],
  ['api_base', 'http://127.0.0.1:1/'],
  ['base_url', 'http://127.0.0.1:1/'],
  ['litellm_params', { model: 'gpt-5' }],
  ['speculative_model', 'gpt-5'],
  ['n_predict', 1_000_000],
  ['num_predict', 1_000_000],
  ['max_new_tokens', 1_000_000],
  ['max_output_tokens', 1_000_000],
  ['max_length', 1_000_000],
  ['min_tokens', 1_000_000],
  ['options', { num_predict: 1_000_000, num_ctx: 1_000_000 }],
  ['generation_config', { max_output_tokens: 1_000_000 }],
  ['best_of', 100],
  ['num_return_sequences', 100],
  ['use_beam_search', true],
  ['ignore_eos', true],
  ['search_parameters', { mode: 'on' }],
  ['mcp_servers', [{ url: 'https://mcp.example' }]],
  ['container', { skills: [] }],
  ['speed', 'fast'],
  ['inference_geo', 'us'],
  ['MODELS', ['gpt-5']],
  ['Max_Tokens', 1_000_000],
  ['max_tokens ', 1_000_000],
  ['__proto__', { model: 'gpt-5' }],
  ['constructor', { prototype: { model: 'gpt-5' } }],
  ['toJSON', 'x'],
];

describe('a field that no table knows', () => {
  it.each(SMUGGLED)('is refused, and nothing is sent or recorded: %s', async (field, value) => {
    const before = callRows(gateway).length;
    const body = `{"model":"large","messages":[{"role":"user","content":"Hi"}],${JSON.stringify(field)}:${JSON.stringify(value)}}`;

    const answer = await chat(gateway, body);

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      {
        message: `\`${field}\` is not a field that the provider takes.`,
        type: 'invalid_request_error',
        param: `/${field}`,
        code: 'unsupported_parameter',
      },
    ]);
    expect([upstream.received.length, callRows(gateway).length]).toEqual([0, before]);
  });

  it.each(SMUGGLED)('is refused in a request for images too: %s', async (field, value) => {
    const body = `{"prompt":"a fox","model":"sandbox-image-plus",${JSON.stringify(field)}:${JSON.stringify(value)}}`;

    const answer = await send(gateway.origin, {
      method: 'POST',
      path: '/v1/images/generations',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body,
    });

    expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([
      400,
      'unsupported_parameter',
      `/${field}`,
    ]);
  });

  it.each(['mcp_servers', 'provider', '\u202emodel'])(
    'counts as absent where it is null, and is not sent: %s',
    async (field) => {
      const nothing = JSON.parse(`{${JSON.stringify(field)}:null}`);
      await chat(gateway, hello({ model: 'large', ...nothing }));
      expect(upstream.received.map((call) => call.json)).toEqual([hello({ model: 'large' })]);

      upstream.begin(pictured());
      await draw(gateway, { prompt: 'a fox', model: 'painter/sandbox-image-max', size: null, ...nothing });
      expect(upstream.received.map((call) => call.json)).toEqual([{ prompt: 'a fox', model: 'sandbox-image-max' }]);
    },
  );

  it.each([
    ['/messages/0/model', { messages: [{ role: 'user', content: 'Hi', model: 'gpt-5' }] }],
    [
      '/messages/0/content/0/model',
      { messages: [{ role: 'user', content: [{ type: 'text', text: '', model: 'x' }] }] },
    ],
    ['/tools/0/model', { tools: [{ type: 'function', function: { name: 'f' }, model: 'gpt-5' }] }],
    ['/tools/0/function/model', { tools: [{ type: 'function', function: { name: 'f', model: 'gpt-5' } }] }],
    ['/tool_choice/model', { tool_choice: { type: 'function', function: { name: 'f' }, model: 'gpt-5' } }],
    ['/stream_options/model', { stream: true, stream_options: { model: 'gpt-5' } }],
    ['/response_format/model', { response_format: { type: 'text', model: 'gpt-5' } }],
    ['/prediction/model', { prediction: { type: 'content', content: 'x', model: 'gpt-5' } }],
    ['/web_search_options/model', { web_search_options: { model: 'gpt-5' } }],
    ['/audio/model', { audio: { voice: 'alloy', model: 'gpt-5' } }],
  ])('is refused inside of OpenAI’s own fields too: %s', async (param, fields) => {
    const answer = await chat(gateway, hello({ model: 'large', ...fields }));

    expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([400, 'unsupported_parameter', param]);
    expect(upstream.received).toEqual([]);
  });

  it('travels in no extension either: an object may hold what the table says, and nothing else', async () => {
    const answer = await chat(gateway, hello({ model: 'large', reasoning: { effort: 'low', model: 'gpt-5' } }));

    expect([answer.status, errorOf(answer)]).toMatchObject([
      400,
      {
        code: 'unsupported_parameter',
        param: '/reasoning',
        message: '`reasoning` holds something that the provider does not take.',
      },
    ]);
    expect(upstream.received).toEqual([]);
  });

  it('of a moderation request is refused', async () => {
    const answer = await send(gateway.origin, {
      method: 'POST',
      path: '/v1/moderations',
      headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE],
      body: JSON.stringify({ input: 'x', extra_body: {} }),
    });

    expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([
      400,
      'unsupported_parameter',
      '/extra_body',
    ]);
  });
});

describe('a field that a provider documents', () => {
  it.each([
    ['acme', { top_k: 40, min_p: 0.1, chat_template_kwargs: { enable_thinking: false } }],
    ['groq', { reasoning_format: 'parsed' }],
    ['mistral', { safe_prompt: true }],
    ['deepseek', { thinking: { type: 'enabled' } }],
    ['openrouter', { reasoning: { effort: 'high' }, transforms: ['middle-out'] }],
  ])('goes to %s: %j', (provider, fields) => {
    const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields };
    const adapter = openAiAdapterFor(provider);
    const endpoint = { base: { origin: 'https://up.example', path: '' }, addresses: 'public' as const };

    expect(adapter.unsupported({ request, mapping: mappingOf(provider) })).toBe(undefined);
    expect(
      JSON.parse(adapter.buildRequest({ request, mapping: mappingOf(provider) }, endpoint).body ?? ''),
    ).toMatchObject(fields);
  });

  it.each([
    ['openai', { top_k: 40 }],
    ['openai', { reasoning: { effort: 'high' } }],
    ['mistral', { thinking: { type: 'enabled' } }],
  ])('goes to no other: %s, %j', (provider, fields) => {
    const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields };

    expect(openAiAdapterFor(provider).unsupported({ request, mapping: mappingOf(provider) })).toMatchObject({
      param: `/${Object.keys(fields)[0]}`,
    });
  });

  it.each([
    [
      'anthropic',
      { thinking: { type: 'enabled', budget_tokens: 2000 }, top_k: 5, betas: ['effort-2025-11-24'] },
      undefined,
    ],
    ['anthropic', { betas: ['fast-mode-2026-02-01'] }, '/betas'],
    ['anthropic', { betas: ['context-1m-2025-08-07'] }, '/betas'],
    ['anthropic', { betas: ['effort-1\r\nx-api-key: b'] }, '/betas'],
    ['anthropic', { betas: 'effort-1' }, '/betas'],
    ['anthropic', { betas: new Array(21).fill('effort-1') }, '/betas'],
    ['anthropic', { context_management: { edits: [{ type: 'compact_20260112' }] } }, '/context_management'],
    ['anthropic', { output_config: { effort: 'low', model: 'claude-opus' } }, '/output_config'],
    ['google', { safety_settings: [{ category: 'x', threshold: 'BLOCK_NONE' }], top_k: 5 }, undefined],
    ['google', { extra_body: { google: { thinking_config: { thinking_budget: 5 } } } }, undefined],
    ['google', { extra_body: { google: { model: 'x' } } }, '/extra_body'],
    ['google', { extra_body: { models: ['x'] } }, '/extra_body'],
    ['google', { generationConfig: { maxOutputTokens: 100_000 } }, '/generationConfig'],
  ])('is known for the wire format of %s: %j', (wire, fields, param) => {
    const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...fields };
    const adapter = wire === 'google' ? googleAdapter : anthropicAdapter;

    expect(adapter.unsupported({ request, mapping: mappingOf(wire) })?.param).toBe(param);
  });
});

describe('a field that the operator lets through', () => {
  it('goes to that provider, and a request that has it to no other', async () => {
    const answer = await chat(gateway, hello({ model: 'other/large', x_trace: 1 }));
    const served = await chat(gateway, hello({ model: 'large', x_trace: { deep: [1] }, x_style: null }));

    expect([answer.status, errorOf(answer).param]).toEqual([400, '/x_trace']);
    expect(served.status).toBe(200);
    expect(upstream.received.map(({ headers, json: sent }) => [headers.authorization, sent])).toEqual([
      ['Bearer secret-of-acme', hello({ model: 'large', x_trace: { deep: [1] }, x_style: null })],
    ]);
  });

  it('is named with a custom provider for that one alone', async () => {
    const { db, firstRun, config } = gateway;
    const models = { flat: FLAT };
    addOwnModels(db, firstRun, upstream.origin, config.allowPrivateUpstreams, models, { fields: ['x_own'] });

    const [named, other] = [
      await chat(gateway, hello({ model: 'own/flat', x_own: 1 })),
      await chat(gateway, hello({ model: 'own/flat', x_trace: 1 })),
    ];

    expect([named.status, other.status, errorOf(other).param]).toEqual([200, 400, '/x_trace']);
  });

  it.each(['models', 'fallbacks', 'n_predict', 'max_output_tokens', 'extra_body', 'options'])(
    'can never be %s: the start is refused',
    async (field) => {
      const env = { ...upstreamEnv('acme', upstream.origin, 'large'), UPSTREAM_ACME_FIELDS: `x_trace,${field}` };

      await expect(startGateway(env)).rejects.toThrow(
        `UPSTREAM_ACME_FIELDS: \`${field}\` can choose another model, a longer answer or a higher price.`,
      );
    },
  );
});

describe('a tier of service', () => {
  it.each(['priority', 'fast', 'scale', 'performance', 'PRIORITY'])(
    'whose prices nobody knows is refused, with a limit on the key or without: %s',
    async (tier) => {
      for (const token of [gateway.firstRun.gatewayKey, addKey(gateway, { usageLimit: '5' }).token]) {
        const answer = await chat(gateway, hello({ model: 'acme/large', service_tier: tier }), { token });

        expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([
          400,
          'unsupported_parameter',
          '/service_tier',
        ]);
      }
      expect(upstream.received).toEqual([]);
    },
  );
});
