// POST /v1/chat/completions with a key that has a spend limit: the README's own examples of upstreams and custom models work, and
// every model is sent a longest answer (issue 12, 1).
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCustomModel } from '../../../src/admin/providers/custom-models.ts';
import { changeBudget } from '../../../src/admin/tenants/budgets.ts';
import { newMember } from '../../../src/admin/tenants/members.ts';
import { newId } from '../../../src/domain/id.ts';
import { chat, completionOf, errorOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { readmeEnvironment, readmePrices } from '../../support/readme.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.begin(json(completion('Hello')));
  gateway = await startGateway({
    ...readmeEnvironment('UPSTREAM_'),
    UPSTREAM_OLLAMA_BASE_URL: `${upstream.origin}/v1`,
    UPSTREAM_GPU_BOX_BASE_URL: `${upstream.origin}/v1`,
    ...upstreamEnv('acme', upstream.origin, 'context,output,both,none', 'context=1/2,output=1/2,both=1/2,none=1/2'),
    UPSTREAM_ACME_LIMITS: 'context=8192/-,output=-/512,both=8192/512',
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

it.each([
  ['llama3.2', undefined],
  ['ollama/llama3.2', undefined],
  ['qwen2.5:7b', undefined],
  ['gpu-box/meta-llama/Llama-3.3-70B-Instruct', 16_384],
])('%s', async (model, maximum) => {
  const { token } = addKey(gateway, { usageLimit: '5' });

  const answer = await chat(gateway, hello({ model }), { token });

  expect(completionOf(answer).choices[0]?.message.content).toBe('Hello');
  expect(Object(upstream.received.at(-1)?.json).max_tokens).toBe(maximum);
});

it('the custom model that is added with prices alone', async () => {
  const { db, firstRun, config } = gateway;
  const customProviderId = addOwnModels(db, firstRun, upstream.origin, config.allowPrivateUpstreams, {});
  const actor = { kind: 'cli', organizationId: firstRun.organizationId } as const;
  createCustomModel(db, actor, { customProviderId, model: 'llama-3.3-70b', pricing: readmePrices() }, Date.now());
  const { token } = addKey(gateway, {
    periodUsageLimit: '10',
    periodUsageDurationValue: 1,
    periodUsageDurationUnit: 'day',
  });

  const answer = await chat(gateway, hello({ model: 'own/llama-3.3-70b' }), { token });

  expect(answer.status).toBe(200);
  expect(completionOf(answer).usage.cost).toBe(0.00000985);
});

describe('the longest answer that is sent upstream', () => {
  const maximumSent = async (to: TestGateway, body: object): Promise<unknown> => {
    const { token } = addKey(to, { usageLimit: '5' });
    expect((await chat(to, body, { token })).status).toBe(200);
    return Object(upstream.received.at(-1)?.json).max_tokens;
  };

  it('is the context length, less half a token for each byte of the request, where the model’s own is not known', async () => {
    const body = hello({ model: 'context' });

    expect(JSON.stringify(body)).toHaveLength(66);
    expect(await maximumSent(gateway, body)).toBe(8192 - 33);
  });

  it.each([
    ['output', undefined, 512],
    ['both', undefined, 512],
    ['both', 100_000, 512],
    ['both', 100, 100],
  ])('is what UPSTREAM_<NAME>_LIMITS says of the model: %s, where %s is asked for', async (model, asked, sent) => {
    expect(await maximumSent(gateway, hello({ model, max_tokens: asked }))).toBe(sent);
  });

  it('is what a call is bounded by: no more of it is held back than those limits let it cost', async () => {
    const { token } = addKey(gateway, { usageLimit: '0.001' });

    const answer = await chat(gateway, hello({ model: 'both', max_tokens: 100_000 }), { token });

    // 83 bytes at 1 and 512 tokens at 2 millionths of a dollar.
    expect([answer.status, errorOf(answer).message]).toEqual([
      401,
      'This call may cost 0.001107 USD, and the all-time usage limit of this API key leaves 0.001 USD.',
    ]);
  });

  it('is another DEFAULT_MAX_OUTPUT_TOKENS where nothing is known, and only there', async () => {
    const env = {
      ...upstreamEnv('acme', upstream.origin, 'both,none', 'both=1/2,none=1/2'),
      UPSTREAM_ACME_LIMITS: 'both=8192/512',
      DEFAULT_MAX_OUTPUT_TOKENS: '2000',
    };
    const other = await startGateway(env);

    const sent = [
      await maximumSent(other, hello({ model: 'none' })),
      await maximumSent(other, hello({ model: 'both' })),
    ];
    await other.close();

    expect(sent).toEqual([2000, 512]);
  });
});

describe('an answer that a limit shortens', () => {
  /** Whatever is asked, its prompt costs the same, since the text has the same length. */
  const body = (more: object = {}) => hello({ model: 'acme/output', ...more });
  const bytes = Buffer.byteLength(JSON.stringify(body()));
  /** A limit that pays for so many tokens of output, at 2 USD per million. */
  const paying = (tokens: number, more = 0) => ((bytes + more + 2 * tokens) / 1e6).toFixed(6);

  it.each([
    ['a key', 'the all-time usage limit of this API key', (limit: string) => addKey(gateway, { usageLimit: limit })],
    [
      'a member',
      'the all-time budget of the owner of this API key',
      (limit: string) => {
        const { db, firstRun } = gateway;
        const actor = { kind: 'cli', organizationId: firstRun.organizationId } as const;
        const id = newId('mem');
        const member = { id, organizationId: firstRun.organizationId, email: `${id}@example.com`, name: null };
        newMember(db, { ...member, role: 'admin' }, Date.now());
        const owner = { kind: 'member', member: id } as const;
        changeBudget(db, actor, owner, { usageLimit: limit }, Date.now());
        return addKey(gateway, { createdBy: id, usageLimit: '5' });
      },
    ],
  ])('has at least 256 tokens, or is refused: the limit of %s', async (_, limit, keyWith) => {
    const [poor, enough] = [keyWith(paying(255)), keyWith(paying(256))];

    const refused = await chat(gateway, body(), poor);
    expect([refused.status, errorOf(refused).code]).toEqual([401, 'usage_limit_reached']);

    const served = await chat(gateway, body(), enough);
    expect(Object(upstream.received.at(-1)?.json).max_tokens).toBe(256);
    expect(completionOf(served).usage.info).toBe(`Each choice was limited to 256 tokens: ${limit} pays for no more.`);
  });

  it('can be shorter where the caller asks for less', async () => {
    const { token } = addKey(gateway, { usageLimit: paying(10, ',"max_tokens":10'.length) });
    expect((await chat(gateway, body({ max_tokens: 10 }), { token })).status).toBe(200);
  });

  it('waits for the calls that run, where it would be long enough without them', async () => {
    const { token } = addKey(gateway, { usageLimit: paying(300) });
    const arrived = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => arrived.resolve(response));
    const first = chat(gateway, body({ max_tokens: 50 }), { token });
    const response = await arrived.promise;
    const second = await chat(gateway, body(), { token });
    response.end(JSON.stringify(completion('Hello')));
    await first;
    upstream.begin(json(completion('Hello')));
    expect([second.status, errorOf(second).code]).toEqual([429, 'budget_reserved']);
  });
});
