// Threat: a tool that runs at the provider calls another model, or costs more than tokens do: policy and ledger see neither.
// Defence: such a tool passes only if a table says what it costs and that it calls no other model.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ChatRequest, ChatTool } from '../../src/generated/types.ts';
import { anthropicAdapter } from '../../src/providers/anthropic/anthropic.ts';
import { googleAdapter } from '../../src/providers/google/google.ts';
import { openAiAdapterFor } from '../../src/providers/openai/openai.ts';
import { mappingOf } from '../providers/answers.ts';
import { chat, completionOf, errorOf, hello } from '../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { callRow } from '../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

/** An answer of the Messages API. */
const message = (usage: object) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-4-6',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  usage,
});

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=1/10'),
    ANTHROPIC_API_KEY: 'sk-ant-test',
    ANTHROPIC_BASE_URL: upstream.origin,
    OPENAI_API_KEY: 'sk-test',
    OPENAI_BASE_URL: `${upstream.origin}/v1`,
  });
});

beforeEach(() => upstream.begin(json(completion('Hello'))));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const TYPES = [
  'advisor_20260301',
  'advisor',
  'code_execution_20250825',
  'code_interpreter',
  'computer_use_preview',
  'file_search',
  'image_generation',
  'live_search',
  'mcp',
  'mcp_toolset',
  'memory_20250818',
  'openrouter:advisor',
  'openrouter:web_search',
  'orq:advisor',
  'subagent',
  'tool_search_tool_regex_20251119',
  'web_fetch_20250910',
  'web_search_preview',
  'web_search_99991231',
  'Function',
  'function ',
  '',
];

describe('a tool that no table knows', () => {
  it.each(TYPES)('is refused at every wire format: %j', (type) => {
    const request: ChatRequest = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], tools: [{ type }] };
    const refused = ['openai', 'openrouter', 'xai', 'groq', 'acme'].map((id) =>
      openAiAdapterFor(id).unsupported({ request, mapping: mappingOf(id) }),
    );
    for (const adapter of [anthropicAdapter, googleAdapter]) {
      refused.push(adapter.unsupported({ request, mapping: mappingOf('x', { prices: { web_search: 1n } }) }));
    }

    expect(refused.map((each) => each?.param)).toEqual(new Array(7).fill('/tools/0/type'));
  });

  it('is refused with 400 however it is spelled, and nothing is sent', async () => {
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['claude-opus*'] } });
    const advisor = { type: 'advisor_20260301', name: 'advisor' };
    const function_ = { type: 'function', function: { name: 'f' } };

    for (const [tools, param, code] of [
      [[advisor], '/tools/0/type', 'unsupported_parameter'],
      [[function_, advisor], '/tools/1/type', 'unsupported_parameter'],
      [[{ ...advisor, model: 'claude-opus-4-6' }], '/tools/0/model', 'unsupported_parameter'],
      [[{ ...function_, name: 'advisor' }], '/tools/0/name', 'unsupported_parameter'],
      [[{ ...function_, max_uses: 5 }], '/tools/0/max_uses', 'unsupported_parameter'],
    ] as const) {
      const answer = await chat(gateway, hello({ model: 'anthropic/claude-sonnet-4-6', tools }));

      expect([answer.status, errorOf(answer).param, errorOf(answer).code]).toEqual([400, param, code]);
    }
    expect(upstream.received).toEqual([]);
  });

  it('is not let through by naming it as a field, or by a feature of a header', async () => {
    for (const fields of [
      { mcp_servers: [{ type: 'url', url: 'https://mcp.example', name: 'm' }] },
      { betas: ['advisor-tool-2026-03-01'] },
      { betas: ['mcp-client-2025-04-04'] },
      { container: { skills: [{ type: 'anthropic', skill_id: 'pptx' }] } },
    ]) {
      const answer = await chat(gateway, hello({ model: 'anthropic/claude-sonnet-4-6', ...fields }));

      expect([answer.status, errorOf(answer).code]).toEqual([400, 'unsupported_parameter']);
    }
    expect(upstream.received).toEqual([]);
  });
});

describe('a web search', () => {
  const search: ChatTool = { type: 'web_search_20250305', name: 'web_search' };

  it('of Anthropic is sent with a maximum, and each search is billed', async () => {
    upstream.begin(json(message({ input_tokens: 10, output_tokens: 5, server_tool_use: { web_search_requests: 3 } })));

    const answer = await chat(gateway, hello({ model: 'anthropic/claude-sonnet-4-6', tools: [search] }));

    expect(upstream.received[0]?.json).toMatchObject({ tools: [{ ...search, max_uses: 10 }] });
    expect(completionOf(answer).usage.cost_details?.web_search_cost).toBe(0.03);
  });

  it('is held back for a key with a limit: ten searches, and what they bring in', async () => {
    upstream.begin(json(message({ input_tokens: 10, output_tokens: 5 })));
    const { token } = addKey(gateway, { usageLimit: '0.09' });

    const answer = await chat(
      gateway,
      hello({ model: 'anthropic/claude-sonnet-4-6', max_tokens: 1, tools: [search] }),
      { token },
    );

    expect([answer.status, errorOf(answer).code]).toEqual([401, 'usage_limit_reached']);
    expect(upstream.received).toEqual([]);
  });

  it('that the provider charges and never reports is billed once', async () => {
    const answer = await chat(gateway, hello({ model: 'openai/gpt-4o-mini', web_search_options: {} }));

    expect(completionOf(answer).usage.cost_details?.web_search_cost).toBe(0.01);
    expect(callRow(gateway, answer).cost).toBeGreaterThan(10_000_000_000n);
  });

  it('whose price is not known is refused', async () => {
    const answer = await chat(gateway, hello({ model: 'large', web_search_options: {} }));

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      {
        message: 'The price of a web search at this provider is not known.',
        type: 'invalid_request_error',
        param: '/web_search_options',
        code: 'unsupported_parameter',
      },
    ]);
    expect(upstream.received).toEqual([]);
  });
});

describe('a moderation by OpenAI within a chat', () => {
  it('may name one of its free models', async () => {
    const moderation = { model: 'omni-moderation-latest' };

    const answer = await chat(gateway, hello({ model: 'openai/gpt-4o-mini', moderation }));

    expect([answer.status, upstream.received.length]).toEqual([200, 1]);
  });

  it('may name no other model, and goes to no other provider', async () => {
    const other = await chat(gateway, hello({ model: 'openai/gpt-4o-mini', moderation: { model: 'gpt-5' } }));
    const elsewhere = await chat(gateway, hello({ model: 'large', moderation: { model: 'omni-moderation-latest' } }));

    expect([other.status, errorOf(other).param]).toEqual([400, '/moderation/model']);
    expect([elsewhere.status, errorOf(elsewhere).param]).toEqual([400, '/moderation']);
    expect(upstream.received).toEqual([]);
  });
});
