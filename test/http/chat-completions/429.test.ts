// POST /v1/chat/completions: a key whose limit has room, but not with the calls that are still running; and how long an answer
// may get.
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { addOwnModels, FLAT } from '../../support/own-models.ts';
import { callRow, callRows, keySums } from '../../support/rows.ts';
import {
  chunk,
  completion,
  events,
  failure,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
} from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

const METERED = { maxOutput: 1000, pricing: { prompt: '0.000001', completion: '0.00001' } };

beforeEach(async () => {
  upstream = await startUpstream();
  const env = { ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host, MIN_OUTPUT_TOKENS: '1' };
  gateway = await startGateway(env, { caching: true });
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, {
    flat: FLAT,
    metered: METERED,
    // Nobody knows how long its answers can get, but they are free.
    endless: { pricing: { prompt: '0', completion: '0' } },
    // Its own maximum is smaller, and it costs more by the token.
    terse: { maxOutput: 30, pricing: { prompt: '0.000001', completion: '0.00002' } },
  });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const saying = (content: string, more: object = {}) =>
  hello({ model: 'own/metered', messages: [{ role: 'user', content }], ...more });

/** Bytes of the request, in millionths of a dollar, which is what each costs. */
const promptCost = (body: object): number => JSON.stringify(body).length;

const microUsd = (amount: number): string => (amount / 1_000_000).toFixed(6);

/** What the upstream was asked for. */
const asked = (): unknown[] => upstream.received.map(({ json: sent }) => sent);

describe('a call while another is still running', () => {
  it('gets retry-after when both cannot be paid for, and passes when the other has ended', async () => {
    const key = addKey(gateway, { usageLimit: '0.015' });
    const arrived = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => arrived.resolve(response));
    const first = chat(gateway, hello({ model: 'own/flat' }), key);
    const response = await arrived.promise;

    const second = await chat(gateway, hello({ model: 'own/flat', user: 'two' }), key);

    expect([second.status, second.headers['retry-after'], second.json]).toEqual([
      429,
      '1',
      {
        error: {
          message:
            'This call may cost 0.01 USD. The all-time usage limit of this API key leaves 0.015 USD, of which 0.01 USD are held ' +
            'back for calls that are still running. Try again when they have ended.',
          type: 'rate_limit_error',
          param: null,
          code: 'budget_reserved',
        },
      },
    ]);
    expect(callRow(gateway, second)).toMatchObject({
      state: 'released',
      statusCode: 429,
      errorCode: 'budget_reserved',
      decisionId: second.headers['x-decision-id'],
    });
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 0n, reserved: 10_000_000_000n });

    response.writeHead(500).end();
    expect((await first).status).toBe(502);
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 0n, reserved: 0n });
    upstream.begin(json(completion('Hello')));
    expect((await chat(gateway, hello({ model: 'own/flat', user: 'two' }), key)).status).toBe(200);
  });

  it('is refused for good when it would not fit alone', async () => {
    const key = addKey(gateway, { usageLimit: '0.015' });
    const arrived = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => arrived.resolve(response));
    const first = chat(gateway, hello({ model: 'own/flat' }), key);
    const response = await arrived.promise;

    const second = await chat(gateway, saying('two', { max_tokens: 1000, n: 2 }), key);

    expect([second.status, errorOf(second).code]).toEqual([401, 'usage_limit_reached']);
    response.end(JSON.stringify(completion('Hello')));
    expect((await first).status).toBe(200);
  });
});

describe('a caller with a limit who names no maximum', () => {
  it('gets the longest answer that fits, sent upstream and said in usage.info', async () => {
    const body = saying('one', { n: 2 });
    const key = addKey(gateway, { usageLimit: microUsd(promptCost(body) + 2 * 10 * 70 + 19) });

    const answer = await chat(gateway, body, key);

    expect(asked()).toEqual([{ ...body, model: 'metered', max_tokens: 70 }]);
    expect(completionOf(answer).usage.info).toBe(
      'Each choice was limited to 70 tokens: the all-time usage limit of this API key pays for no more.',
    );
    expect(callRow(gateway, answer)).toMatchObject({
      state: 'settled',
      reservation: BigInt(promptCost(body) + 1400) * 1_000_000n,
      cost: 60_000_000n,
    });
  });

  it('is the same at the end of a stream', async () => {
    upstream.begin(events(chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop'), USAGE_CHUNK));
    const body = saying('one', { stream: true });
    const key = addKey(gateway, { usageLimit: microUsd(promptCost(body) + 10 * 70) });

    const { chunks, done } = eventsOf((await chat(gateway, body, key)).text);

    expect(asked()).toMatchObject([{ max_tokens: 70 }]);
    expect([done, chunks.at(-1)?.usage?.info]).toEqual([
      true,
      'Each choice was limited to 70 tokens: the all-time usage limit of this API key pays for no more.',
    ]);
  });

  it('gets no more than the model has', async () => {
    const answer = await chat(gateway, saying('one'), addKey(gateway, { usageLimit: '5' }));

    expect(asked()).toMatchObject([{ max_tokens: 1000 }]);
    expect(completionOf(answer).usage.info).toContain('limited to 1000 tokens');
  });

  it('gets one token at least, or is refused', async () => {
    const body = saying('one');
    const [enough, tooLittle] = [10, 9].map((more) =>
      addKey(gateway, { usageLimit: microUsd(promptCost(body) + more) }),
    );

    expect((await chat(gateway, body, enough)).status).toBe(200);
    expect(asked()).toMatchObject([{ max_tokens: 1 }]);
    const refused = await chat(gateway, saying('two'), tooLittle);
    expect([refused.status, errorOf(refused).code]).toEqual([401, 'usage_limit_reached']);
  });

  it('gets what the calls that are still running leave', async () => {
    const body = saying('one');
    const key = addKey(gateway, { usageLimit: microUsd(10_000 + promptCost(body) + 10 * 5) });
    const arrived = Promise.withResolvers<ServerResponse>();
    upstream.begin((response) => arrived.resolve(response));
    const first = chat(gateway, hello({ model: 'own/flat' }), key);
    const response = await arrived.promise;
    upstream.begin(json(completion('Hello')));

    await chat(gateway, body, key);

    expect(asked()).toMatchObject([{ max_tokens: 5 }]);
    response.end(JSON.stringify(completion('Hello')));
    await first;
  });

  it('leaves no shortened answer in the cache, and keeps a whole one', async () => {
    const body = saying('one');
    const poor = addKey(gateway, { usageLimit: microUsd(promptCost(body) + 10 * 70) });
    const rich = addKey(gateway, { usageLimit: '5' });

    const hits = [];
    for (const key of [poor, undefined, undefined]) {
      hits.push(completionOf(await chat(gateway, body, key)).metadata.cached);
    }
    for (const key of [rich, undefined])
      hits.push(completionOf(await chat(gateway, saying('two'), key)).metadata.cached);

    expect(hits).toEqual([false, false, true, false, true]);
  });
});

describe('a caller with a limit who names a maximum', () => {
  it('has it sent as it stands, and nothing is said', async () => {
    const body = saying('one', { max_completion_tokens: 40 });

    const answer = await chat(gateway, body, addKey(gateway, { usageLimit: '5' }));

    expect(asked()).toEqual([{ ...body, model: 'metered' }]);
    expect(completionOf(answer).usage.info).toBeUndefined();
    expect(callRow(gateway, answer).reservation).toBe(BigInt(promptCost(body) + 400) * 1_000_000n);
  });

  it('has one that is larger than the model’s own brought down to that, which is said', async () => {
    const answer = await chat(
      gateway,
      saying('one', { model: 'own/terse', max_completion_tokens: 40 }),
      addKey(gateway, { usageLimit: '5' }),
    );

    expect(asked()).toMatchObject([{ max_completion_tokens: 30 }]);
    expect(completionOf(answer).usage.info).toBe(
      'A usage limit applies to this API key: each choice was limited to 30 tokens.',
    );
  });
});

describe('the choice of `auto`', () => {
  it('is, for a key with a limit, the same: what is free needs no bound', async () => {
    const key = addKey(gateway, { usageLimit: '5' });
    const auto = (more: object = {}) => hello({ model: 'auto', ...more });

    for (const [body, caller] of [
      [auto(), undefined],
      [auto({ user: 'two' }), key],
    ] as const) {
      await chat(gateway, body, caller);
    }

    expect(asked()).toEqual([auto({ model: 'endless' }), auto({ model: 'endless', user: 'two' })]);
  });
});

describe('a caller without a limit', () => {
  it('has the request sent unchanged', async () => {
    await chat(gateway, saying('one'));
    await chat(gateway, saying('two', { max_tokens: 5000 }));

    expect(asked()).toEqual([
      { ...saying('one'), model: 'metered' },
      { ...saying('two', { max_tokens: 5000 }), model: 'metered' },
    ]);
    expect(callRows(gateway).map(({ reservation }) => reservation)).toEqual([0n, 0n]);
  });
});

describe('a provider that reports more than was reserved', () => {
  it('is believed: the truth is booked, the limit is over, and that is counted', async () => {
    upstream.begin(
      json(completion('Hello', { usage: { prompt_tokens: 10, completion_tokens: 5000, total_tokens: 5010 } })),
    );
    const key = addKey(gateway, { usageLimit: '0.02' });

    const answer = await chat(gateway, saying('one', { max_tokens: 5 }), key);

    expect(completionOf(answer).usage.cost).toBe(0.05001);
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 50_010_000_000n, reserved: 0n });
    expect((await chat(gateway, saying('two'), key)).status).toBe(401);
    const exposition = await (await fetch(`${gateway.management}/metrics`)).text();
    expect(exposition).toMatch(/^portcullis_over_reservations(_total)? 1$/m);
  });

  it('and fails costs nothing, and holds nothing back', async () => {
    upstream.begin(failure(500, 'No.'));
    const key = addKey(gateway, { usageLimit: '1' });

    expect((await chat(gateway, saying('one'), key)).status).toBe(502);

    expect(keySums(gateway, key.id)).toMatchObject({ usage: 0n, reserved: 0n });
  });
});
