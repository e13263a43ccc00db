// Real calls, as the ledger books them, in a report a moment later.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, chat } from '../../../support/chat.ts';
import { addRule, startGateway, type TestGateway } from '../../../support/gateway.ts';
import { send } from '../../../support/request.ts';

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
        { ...row, model: null, denied: 1 },
        { ...row, model: 'sandbox-free', promptTokens: 2, completionTokens: 4 },
        { ...row, model: 'sandbox-paid', promptTokens: 2, completionTokens: 4, cost: '0.000018' },
      ],
    },
  });
});
