// Real calls, as the ledger books them, in a report a moment later.
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { bearer, chat } from '../../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway, type TestKey } from '../../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../../support/own-models.ts';
import { send } from '../../../support/request.ts';
import { completion, json, startUpstream } from '../../../support/upstream.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.close());

it('holds every call: paid, free and denied', async () => {
  const ask = (model: string) => chat(gateway, { model, messages: [{ role: 'user', content: 'Hello' }] });
  const statuses = [await ask('sandbox-paid'), await ask('sandbox-free')].map(({ status }) => status);
  addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-slow'] } });
  statuses.push((await ask('sandbox-slow')).status);

  const { json } = await send(gateway.management, {
    path: '/v1/master/usage?granularity=total&groupBy=model,key',
    headers: [bearer(gateway.firstRun.masterKey)],
  });

  expect(statuses).toEqual([200, 200, 403]);
  const row = { keyId: gateway.keyId, calls: 1, errors: 0, denied: 0, cost: '0', promptTokens: 0 };
  expect(json).toMatchObject({
    usage: {
      rows: [
        { ...row, model: 'sandbox-free', promptTokens: 2, completionTokens: 4 },
        { ...row, model: 'sandbox-paid', promptTokens: 2, completionTokens: 4, cost: '0.000018' },
        { ...row, model: 'sandbox-slow', denied: 1 },
      ],
    },
  });
});

it('shows a custom model by its one name, its unknown price as unknown, and a call that a limit refused as that', async () => {
  const upstream = await startUpstream();
  onTestFinished(() => upstream.close());
  const own = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host });
  onTestFinished(() => own.close());
  addOwnModels(own.db, own.firstRun, upstream.origin, own.config.allowPrivateUpstreams, { flat: FLAT, unpriced: {} });
  upstream.begin(json(completion('Hello')));
  const ask = (model: string, key?: TestKey) =>
    chat(own, { model, messages: [{ role: 'user', content: 'Hello' }] }, key);

  const unpriced = await ask('own/unpriced');
  const refused = await ask('own/flat', addKey(own, { usageLimit: '0.009' }));

  const answer = await send(own.management, {
    path: '/v1/master/usage?granularity=total&groupBy=model,provider',
    headers: [bearer(own.firstRun.masterKey)],
  });
  expect([unpriced.status, refused.status]).toEqual([200, 401]);
  const row = { provider: 'own', calls: 1, errors: 0, denied: 0 };
  expect(answer.json).toMatchObject({
    usage: {
      rows: [
        { ...row, model: 'own/flat', limitRefusals: 1, unknownPriceCalls: 0, cost: '0' },
        { ...row, model: 'own/unpriced', limitRefusals: 0, unknownPriceCalls: 1, cost: null },
      ],
    },
  });
});
