// POST /v1/chat/completions with the model `auto` (src/core/README.md, "auto").
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { validator } from '../../../src/lib/schemas.ts';
import { chat, completionOf, errorOf, hello } from '../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow, decisionRows } from '../../support/rows.ts';
import { completion, failure, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const validatePolicyInput = validator('PolicyInput');

let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.begin(json(completion('Chosen')));
  gateway = await startGateway({
    ...upstreamEnv('acme', upstream.origin, 'dear,unpriced', 'dear=3/3'),
    ...upstreamEnv('zeta', upstream.origin, 'cheap,middle,priciest', 'cheap=1/1,middle=2/2,priciest=4/4'),
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const auto = (more: Readonly<Record<string, unknown>> = {}) => hello({ model: 'auto', ...more });
const denyModels = (...models: string[]) => addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models } });
/** The models that were tried, in order. */
const tried = (): unknown[] =>
  upstream.received.map(({ json: sent }) =>
    typeof sent === 'object' && sent !== null && 'model' in sent ? sent.model : '',
  );

describe('the choice', () => {
  it('is the cheapest, and the answer says what was asked for and what was used', async () => {
    const answer = await chat(gateway, auto());
    const { metadata, model } = completionOf(answer);
    expect([model, metadata.requested_model, metadata.requested_provider, metadata.used_model]).toEqual([
      'cheap',
      'auto',
      undefined,
      'cheap',
    ]);
    expect(callRow(gateway, answer)).toMatchObject({ requestedModel: 'auto', modelId: 'cheap' });
  });

  it('fails over to the next cheapest, three at most, unknown prices last', async () => {
    upstream.begin(failure(500, 'x'));
    expect((await chat(gateway, auto())).status).toBe(502);
    expect(tried()).toEqual(['cheap', 'middle', 'dear']);
  });

  it('is made among what the policy permits, by a decision on exactly what was chosen', async () => {
    denyModels('cheap', 'middle', 'dear');
    upstream.begin(failure(500, 'x'));
    await chat(gateway, auto());
    const [decision] = decisionRows(gateway);
    expect(tried()).toEqual(['priciest', 'unpriced']);
    const input: unknown = JSON.parse(decision?.inputJson ?? '');
    if (!validatePolicyInput(input)) throw new Error('no input document');
    expect(input.candidates.map(({ id }) => id)).toEqual(['zeta/priciest', 'acme/unpriced']);
  });

  it('is refused with the reason when nothing is permitted', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'allow_providers', ruleValue: { providers: ['nobody'] } });
    const answer = await chat(gateway, auto());
    expect([answer.status, errorOf(answer).message.includes(id), upstream.received.length]).toEqual([403, true, 0]);
    expect(callRow(gateway, answer).state).toBe('denied');
  });

  it('is never an unpriced model for a key with a limit', async () => {
    denyModels('cheap', 'middle', 'dear', 'priciest');
    const limited = addKey(gateway, { usageLimit: '1' });
    addRule({ ...gateway, keyId: limited.id }, 'key', {
      ruleType: 'deny_models',
      ruleValue: { models: ['cheap', 'middle', 'dear', 'priciest'] },
    });
    const answer = await chat(gateway, auto(), { token: limited.token });
    expect([answer.status, errorOf(answer).code, upstream.received.length]).toEqual([400, 'invalid_request', 0]);
  });

  it('does without the sandbox while anything else has a credential', async () => {
    denyModels('cheap', 'middle', 'dear', 'priciest', 'unpriced');
    expect((await chat(gateway, auto())).status).toBe(403);
  });

  it('fits the request: what takes no images is no candidate for one', async () => {
    const content = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }];
    const answer = await chat(gateway, auto({ messages: [{ role: 'user', content }] }));
    expect([answer.status, errorOf(answer).code]).toEqual([404, 'model_not_found']);
  });
});

describe('with the sandbox alone', () => {
  let alone: TestGateway;
  beforeEach(async () => {
    alone = await startGateway();
  });
  afterEach(() => alone.close());

  const used = async (more: Readonly<Record<string, unknown>> = {}) =>
    completionOf(await chat(alone, auto(more))).metadata.used_model;

  it('it is the sandbox that answers, the free model first', async () => {
    expect(await used()).toBe('sandbox-free');
    expect(await used({ tools: [{ type: 'function', function: { name: 'f' } }] })).toBe('sandbox-free');
  });

  it.each([
    ['a longer answer than any gives', { max_tokens: 1_000_000 }],
    ['a longer prompt than any reads', { messages: [{ role: 'user', content: 'x '.repeat(300_000) }] }],
    ['speech', { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA' } }] }] }],
    ['thoughts', { reasoning_effort: 'high' }],
  ])('nothing fits %s: 404', async (_, more) => {
    const answer = await chat(alone, auto(more));
    expect([answer.status, errorOf(answer).message]).toEqual([
      404,
      'No model that this project has a credential for fits the request.',
    ]);
  });
});
