// The tools of `/mcp`: what they take, what they give, and what is kept of them.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { addRule, removeRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, resultOf, rpc, rpcErrorOf, statelessRpc, toolResultOf } from '../../support/mcp.ts';
import { callRow, decisionRows } from '../../support/rows.ts';
import { completion, failure, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

beforeEach(() => upstream.begin(json(completion('A tower.'))));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const question = (model = 'acme/large') => ({ model, messages: [{ role: 'user', content: 'What is a keep?' }] });

const refused = (message: string, code: string) => ({
  content: [{ type: 'text', text: message }],
  isError: true,
  _meta: { 'portcullis/code': code },
});

describe('tools/list', () => {
  it('shows the five tools in one order, with arguments and hints', async () => {
    const { tools } = resultOf(await rpc(gateway, 'tools/list')) as { tools: unknown[] };

    expect(tools).toMatchObject([
      {
        name: 'chat',
        inputSchema: { type: 'object', required: ['model', 'messages'], additionalProperties: false },
        annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
      },
      { name: 'generate-image', inputSchema: { required: ['prompt'] }, annotations: { readOnlyHint: false } },
      { name: 'generate-nano-banana', inputSchema: { required: ['prompt'] }, annotations: { readOnlyHint: false } },
      {
        name: 'list-models',
        inputSchema: { required: [] },
        outputSchema: { type: 'object', required: ['models', 'total'] },
        annotations: { readOnlyHint: true, idempotentHint: true },
      },
      {
        name: 'list-image-models',
        inputSchema: { properties: {}, required: [], additionalProperties: false },
        outputSchema: { type: 'object', required: ['models'] },
        annotations: { readOnlyHint: true },
      },
    ]);
  });
});

describe('chat', () => {
  it('answers with the text, and with what it cost', async () => {
    const answer = await callTool(gateway, 'chat', { ...question(), temperature: 0, max_tokens: 100 });

    expect(toolResultOf(answer)).toEqual({
      content: [{ type: 'text', text: 'A tower.' }],
      _meta: {
        'portcullis/model': 'large',
        'portcullis/usage': expect.objectContaining({ prompt_tokens: 10, completion_tokens: 5, cost: 0.00006 }),
        'portcullis/metadata': expect.objectContaining({ requested_model: 'acme/large', used_provider: 'acme' }),
      },
    });
    expect(upstream.received.map((call) => call.json)).toEqual([
      { ...question('large'), temperature: 0, max_tokens: 100 },
    ]);
  });

  it('leaves out the parts of the cost that are zero, but keeps the sum', async () => {
    const usageOf = async (args: object): Promise<unknown> =>
      Object(toolResultOf(await callTool(gateway, 'chat', args))._meta)['portcullis/usage'];
    expect(await usageOf(question())).toMatchObject({ cost: 0.00006 });
    expect(Object(await usageOf(question())).cost_details).toEqual({
      upstream_inference_cost: 0.00006,
      upstream_inference_prompt_cost: 0.00002,
      upstream_inference_completions_cost: 0.00004,
      total_cost: 0.00006,
      input_cost: 0.00002,
      output_cost: 0.00004,
    });
    const free = await usageOf({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] });
    expect(free).toMatchObject({ cost: 0, cost_details: {} });
    expect(Object(free).cost_details).toEqual({});
  });

  it('is a call in the ledger like any other, by the name of the tool', async () => {
    const answer = await callTool(gateway, 'chat', question());
    const row = callRow(gateway, answer);
    const decision = decisionRows(gateway).find(({ callId }) => callId === row.id);

    expect([row, answer.headers['x-decision-id']]).toMatchObject([
      { tool: 'chat', state: 'settled', requestedModel: 'acme/large', statusCode: 200, cost: 60_000_000n },
      decision?.id,
    ]);
    expect(JSON.parse(decision?.inputJson ?? '')).toMatchObject({ action: 'chat', tool: 'chat' });
  });

  it('works for the stateless era', async () => {
    const params = { name: 'chat', arguments: question() };

    expect(toolResultOf(await statelessRpc(gateway, 'tools/call', params)).content).toEqual([
      { type: 'text', text: 'A tower.' },
    ]);
  });

  it('is denied by the rules of the key in the words of the REST endpoint', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['large'] } });
    const answer = await callTool(gateway, 'chat', question());
    removeRule(gateway, 'key', id);

    expect(toolResultOf(answer)).toEqual(
      refused(`Access denied: model not allowed: large is denied by rule ${id}.`, 'permission_denied'),
    );
    expect([callRow(gateway, answer).statusCode, upstream.received]).toEqual([403, []]);
  });

  it.each([
    [
      'a model that does not exist',
      question('no-such-model'),
      'The model `no-such-model` does not exist.',
      'model_not_found',
    ],
    ['no messages', { model: 'large', messages: [] }, '/messages must hold at least one entry.', 'invalid_request'],
    ['no model', { messages: question().messages }, '/model is missing.', 'invalid_request'],
    ['a temperature beyond 2', { ...question(), temperature: 3 }, '/temperature (3) must be <= 2.', 'invalid_request'],
    [
      'a field that the tool has not',
      { ...question(), stream: true },
      '/stream (true) is not a known field.',
      'invalid_request',
    ],
  ])('with %s is refused as a result, so that a model can mend it', async (_, args, message, code) => {
    expect(toolResultOf(await callTool(gateway, 'chat', args))).toEqual(refused(message, code));
  });

  it('that its provider fails says so without the text of the provider', async () => {
    upstream.begin(failure(500, 'a stack trace with sk-secret'));
    const result = toolResultOf(await callTool(gateway, 'chat', question()));

    expect([result.isError, result._meta, result.content[0]?.text]).toEqual([
      true,
      { 'portcullis/code': 'upstream_error' },
      expect.not.stringContaining('secret'),
    ]);
  });
});

it('an answer that no client could show is not parsed for it', async () => {
  upstream.begin(json(completion('a'.repeat(3_000_000))));
  const result = toolResultOf(await callTool(gateway, 'chat', question()));

  expect(result).toEqual(refused('The answer of the provider is too large for a tool result.', 'upstream_error'));
});

it('a tool that does not exist is a JSON-RPC error', async () => {
  expect(rpcErrorOf(await callTool(gateway, 'no-such-tool', {}))).toEqual({
    code: -32602,
    message: 'There is no tool no-such-tool.',
  });
});

describe('list-models', () => {
  it('lists what the key can use, with prices in USD per million tokens', async () => {
    const { id } = addRule(gateway, 'key', {
      ruleType: 'allow_models',
      ruleValue: { models: ['large', 'sandbox-paid'] },
    });
    const result = toolResultOf(await callTool(gateway, 'list-models', {}));
    removeRule(gateway, 'key', id);

    expect(result.structuredContent).toMatchObject({
      models: [
        { id: 'large', name: 'large', family: 'acme', input_price: '2', output_price: '8', free: false },
        { id: 'sandbox-moderation', output: ['moderation'], free: true },
        { id: 'sandbox-paid', input: ['text', 'image'], input_price: '1', output_price: '4', context_length: 128_000 },
      ],
      total: 3,
    });
    expect(JSON.parse(result.content[0]?.text ?? '')).toEqual(result.structuredContent);
  });

  it('does not list a model that the rules deny', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['large'] } });
    const denied = toolResultOf(await callTool(gateway, 'list-models', { family: 'acme' }));
    removeRule(gateway, 'key', id);
    const listed = toolResultOf(await callTool(gateway, 'list-models', { family: 'ACME' }));

    expect([denied.structuredContent, listed.structuredContent]).toMatchObject([
      { models: [], total: 0 },
      { models: [{ id: 'large' }], total: 1 },
    ]);
  });

  it('lists no more than asked for, and says how many there are', async () => {
    const { structuredContent } = toolResultOf(await callTool(gateway, 'list-models', { limit: 1, family: 'sandbox' }));

    expect(structuredContent).toMatchObject({ models: [{ family: 'sandbox' }], total: 7 });
  });

  it('lists 20 where it does not say how many', async () => {
    const ids = Array.from({ length: 30 }, (_, number) => `model-${number}`).join(',');
    const many = await startGateway(upstreamEnv('acme', upstream.origin, ids, 'model-0=1/1'));
    const { structuredContent } = toolResultOf(await callTool(many, 'list-models', { family: 'acme' }));
    await many.close();

    expect(structuredContent).toMatchObject({ models: { length: 20 }, total: 30 });
  });

  it.each([
    [0, '/limit (0) must be >= 1.'],
    [1e9, '/limit (1000000000) must be <= 1000.'],
  ])('a limit of %d is refused', async (limit, message) => {
    expect(toolResultOf(await callTool(gateway, 'list-models', { limit }))).toEqual(
      refused(message, 'invalid_request'),
    );
  });
});

describe('list-image-models', () => {
  it('lists the image models with their prices, on a fresh install exactly the two of the sandbox', async () => {
    const { structuredContent, content } = toolResultOf(await callTool(gateway, 'list-image-models', {}));

    expect(structuredContent).toEqual({
      models: [
        { id: 'sandbox-image-max', description: expect.any(String), image_price: '0.04' },
        { id: 'sandbox-image-plus', description: expect.any(String), image_price: '0.01' },
      ],
    });
    expect(content[0]?.text?.split('\n')).toEqual([
      expect.stringMatching(/^- sandbox-image-max: .*\. Price: 0\.04 USD per image\.$/),
      expect.stringMatching(/^- sandbox-image-plus: .*\. Price: 0\.01 USD per image\.$/),
    ]);
  });
});
