// The order in which a request is judged (src/http/README.md, "Errors and hostile input"): the first that refuses answers.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, errorOf, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { addKey, addRule, disable, startGateway, type TestGateway, type TestKey } from '../../support/gateway.ts';
import { startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let disabled: TestKey;
let capped: TestKey;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'unpriced'), MAX_BODY_BYTES: '5000' });
  disabled = addKey(gateway);
  disable(gateway, disabled.id);
  capped = addKey(gateway, { usageLimit: '1' });
  addRule(gateway, 'member', { ruleType: 'deny_models', ruleValue: { models: ['unpriced', 'sandbox-paid'] } });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const BAD_HOST = ['Host', 'evil.example'] as const;
const PLAIN = ['content-type', 'text/plain'] as const;
const LARGE = 'x'.repeat(6000);
const invalid = { model: 'no-such-model', messages: [] };

it.each([
  ['host', 421, () => [BAD_HOST, bearer(disabled.token), PLAIN], LARGE],
  ['ambiguous credentials', 400, () => [bearer(disabled.token), bearer(disabled.token), PLAIN], LARGE],
  ['key', 401, () => [bearer(disabled.token), PLAIN], LARGE],
  ['content type', 415, () => [bearer(capped.token), PLAIN], LARGE],
  ['size', 413, () => [bearer(capped.token), JSON_TYPE], LARGE],
  ['JSON', 400, () => [bearer(capped.token), JSON_TYPE], '{'],
  ['shape', 400, () => [bearer(capped.token), JSON_TYPE], JSON.stringify(invalid)],
  ['model', 404, () => [bearer(capped.token), JSON_TYPE], JSON.stringify(hello({ model: 'no-such-model' }))],
  ['policy', 403, () => [bearer(capped.token), JSON_TYPE], JSON.stringify(hello({ model: 'unpriced' }))],
] as const)('%s: %i', async (_, status, headers, body) => {
  const answer = await post(gateway, body, headers());

  expect([answer.status, errorOf(answer).type]).toEqual([status, 'invalid_request_error']);
});

it('a spent key learns nothing about policy', async () => {
  const spent = addKey(gateway, { usageLimit: '0' });

  const answer = await post(gateway, hello(), [bearer(spent.token), JSON_TYPE]);

  expect([answer.status, errorOf(answer).code, answer.headers['x-decision-id']]).toEqual([
    401,
    'usage_limit_reached',
    undefined,
  ]);
});
