import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, JSON_TYPE } from '../../../support/chat.ts';
import { startGateway, type TestGateway } from '../../../support/gateway.ts';
import { masked } from '../../../support/masked.ts';
import { send } from '../../../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

it('POST /v1/master/platform-keys makes a key whose token is shown once, and which calls nothing', async () => {
  const { projectId, masterKey } = gateway.firstRun;
  const { status, json } = await send(gateway.management, {
    method: 'POST',
    path: '/v1/master/platform-keys',
    headers: [bearer(masterKey), JSON_TYPE],
    body: JSON.stringify({ projectId, description: 'Payments' }),
  });
  const { token, maskedToken, ...platformKey } = Object(json).platformKey;
  expect([status, token, maskedToken]).toEqual([
    201,
    expect.stringMatching(/^sk_[0-9A-Za-z]{46}$/),
    `${token.slice(0, 7)}…${token.slice(-4)}`,
  ]);
  expect(masked(platformKey)).toEqual({
    id: '<key>',
    createdAt: expect.any(String),
    updatedAt: expect.any(String),
    description: 'Payments',
    projectId: '<proj>',
    createdBy: '<mem>',
    createdByEmail: 'owner@localhost',
    kind: 'platform_secret',
    status: 'active',
    state: 'active',
    expiresAt: null,
    usageLimit: null,
    usage: '0',
    periodUsageLimit: null,
    periodUsageDurationValue: null,
    periodUsageDurationUnit: null,
    periodUsageAlignment: null,
    currentPeriodUsage: null,
    currentPeriodStartedAt: null,
    currentPeriodResetAt: null,
    lastUsedAt: null,
    previousTokenEndsAt: null,
    tags: [],
    sharesLimitsOf: null,
    requestsPerMinute: null,
    tokensPerMinute: null,
  });

  const call = await send(gateway.origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(token), JSON_TYPE],
    body: JSON.stringify({ model: 'sandbox-free', messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const models = await send(gateway.origin, { path: '/v1/models', headers: [bearer(token)] });
  const master = await send(gateway.management, { path: '/v1/master/keys', headers: [bearer(token)] });
  expect([call, models, master].map((answer) => [answer.status, Object(answer.json).error?.code])).toEqual(
    Array(3).fill([401, 'invalid_api_key']),
  );
});
