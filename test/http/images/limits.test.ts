// POST /v1/images/generations: keys with a usage limit, held to the price of what they ask for.
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { errorOf } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, imagesOf, pictured } from '../../support/images.ts';
import { addOwnModels } from '../../support/own-models.ts';
import { callRow, keySums } from '../../support/rows.ts';
import { startUpstream, type TestUpstream } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.begin(pictured());
  gateway = await startGateway({ ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host });
  const image = { outputModalities: ['image'] };
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, {
    each: { ...image, pricing: { per_image: '0.03', request: '0.01' } },
    tokens: { ...image, pricing: { prompt: '0.000001', completion: '0.00001', output_image: '0.00003' } },
    unknown: { ...image, pricing: { prompt: '0.000001' } },
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

describe('a key with a usage limit', () => {
  it('pays for as many pictures as it asks for, or gets none', async () => {
    const key = addKey(gateway, { usageLimit: '0.1' });

    const refused = await draw(gateway, fox({ model: 'own/each', n: 4 }), key);

    expect([refused.status, errorOf(refused)]).toMatchObject([
      401,
      {
        code: 'usage_limit_reached',
        message: 'This call may cost 0.13 USD, and the all-time usage limit of this API key leaves 0.1 USD.',
      },
    ]);
    expect(upstream.received).toEqual([]);
    const answer = await draw(gateway, fox({ model: 'own/each', n: 3 }), key);
    expect([answer.status, callRow(gateway, answer).reservation]).toEqual([200, 100_000_000_000n]);
    expect(keySums(gateway, key.id)).toMatchObject({ reserved: 0n });
  });

  it('waits while another call holds what it needs', async () => {
    const key = addKey(gateway, { usageLimit: '0.05' });
    const arrived = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => arrived.resolve(response));
    const first = draw(gateway, fox({ model: 'own/each' }), key);
    const response = await arrived.promise;

    const second = await draw(gateway, fox({ model: 'own/each' }), key);

    expect([second.status, second.headers['retry-after'], errorOf(second).code]).toEqual([429, '1', 'budget_reserved']);
    response.writeHead(500).end();
    expect((await first).status).toBe(502);
    upstream.begin(pictured());
    expect((await draw(gateway, fox({ model: 'own/each' }), key)).status).toBe(200);
  });

  it('holds back so many tokens a picture where those are charged, and pays what was used', async () => {
    const key = addKey(gateway, { usageLimit: '1' });
    const body = fox({ model: 'own/tokens' });
    upstream.begin(pictured({ usage: { input_tokens: 20, output_tokens: 400, total_tokens: 420 } }));

    const answer = await draw(gateway, body, key);

    expect(imagesOf(answer).usage.cost).toBe(0.01202);
    expect(callRow(gateway, answer)).toMatchObject({
      reservation: BigInt(JSON.stringify(body).length) * 1_000_000n + 8192n * 30_000_000n,
      cost: 12_020_000_000n,
    });
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 12_020_000_000n, reserved: 0n });
  });

  it('pays all that was held back where the provider does not report the tokens that it charges', async () => {
    const key = addKey(gateway, { usageLimit: '1' });

    const answer = await draw(gateway, fox({ model: 'own/tokens' }), key);

    const { reservation: reserved, cost } = callRow(gateway, answer);
    expect([imagesOf(answer).usage.cost, cost]).toEqual([undefined, reserved]);
    expect(reserved > 0n).toBe(true);
    expect(keySums(gateway, key.id)).toMatchObject({ usage: cost, reserved: 0n });
    expect(callRow(gateway, await draw(gateway, fox({ model: 'own/tokens' }))).cost).toBe(0n);
  });

  it('may not use a model of which the price of a picture is unknown', async () => {
    const answer = await draw(gateway, fox({ model: 'own/unknown' }), addKey(gateway, { usageLimit: '1' }));

    expect([answer.status, errorOf(answer)]).toMatchObject([
      400,
      {
        code: 'invalid_request',
        message:
          'A usage limit applies to this API key, and no price of the model is known at any permitted provider: the limit could not be kept. ' +
          'Name another model, or have an administrator state its price (custom-models update own/unknown --price).',
      },
    ]);
    expect(upstream.received).toEqual([]);
  });
});
