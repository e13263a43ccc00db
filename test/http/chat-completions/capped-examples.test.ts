// POST /v1/chat/completions: the README's own examples of upstreams and custom models work with a key that has a spend limit.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createCustomModel } from '../../../src/admin/custom-models.ts';
import { chat, completionOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { readmeEnvironment, readmePrices } from '../../support/readme.ts';
import { completion, json, startUpstream, type TestUpstream } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.begin(json(completion('Hello')));
  gateway = await startGateway({
    ...readmeEnvironment('UPSTREAM_'),
    UPSTREAM_OLLAMA_BASE_URL: `${upstream.origin}/v1`,
    UPSTREAM_GPU_BOX_BASE_URL: `${upstream.origin}/v1`,
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
