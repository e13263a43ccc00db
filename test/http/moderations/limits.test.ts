// POST /v1/moderations: keys with a usage limit. Nobody reports the tokens of a moderation: it must be known to cost none.
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { errorOf } from '../../support/chat.ts';
import { addKey, startGateway } from '../../support/gateway.ts';
import { judged, moderate, moderationOf } from '../../support/images.ts';
import { callRow, keySums } from '../../support/rows.ts';
import { startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

const MODEL = 'sandbox-moderation';
let upstream: TestUpstream;

beforeAll(async () => {
  upstream = await startUpstream();
});

beforeEach(() => upstream.begin(judged()));

afterAll(() => upstream.close());

const start = (prices?: string) =>
  startGateway({ ...upstreamEnv('acme', upstream.origin, MODEL, prices), MODERATION_MODEL: `acme/${MODEL}` });

it('that costs nothing holds nothing back', async () => {
  const gateway = await start(`${MODEL}=0/0`);
  try {
    const key = addKey(gateway, { usageLimit: '0.000001' });

    const answer = await moderate(gateway, { input: 'x'.repeat(5000) }, key);

    expect(moderationOf(answer).usage.cost).toBe(0);
    expect(callRow(gateway, answer)).toMatchObject({ state: 'settled', reservation: 0n, cost: 0n });
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 0n, reserved: 0n });
  } finally {
    await gateway.close();
  }
});

it.each([
  ['at an unknown price', undefined],
  ['at a price by the token', `${MODEL}=2/8`],
])('%s it is refused, and sent nowhere', async (_, prices) => {
  const gateway = await start(prices);
  try {
    const limited = await moderate(gateway, { input: 'x' }, addKey(gateway, { usageLimit: '1' }));

    expect([limited.status, errorOf(limited)]).toMatchObject([
      400,
      {
        code: 'invalid_request',
        message: expect.stringContaining(
          'A usage limit applies to this API key, and no price of a request of the model is known at any permitted provider: the limit could not be kept.',
        ),
      },
    ]);
    expect(upstream.received).toEqual([]);
    expect((await moderate(gateway, { input: 'x' })).status).toBe(200);
  } finally {
    await gateway.close();
  }
});
