// Requests beyond an organization's rate: step 5 of the journey, after the key and before the body.
import { afterEach, describe, expect, it } from 'vitest';
import { bearer, chat, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { metricsOf, valuesOf } from '../../support/exposition.ts';
import { addKey, addRule, disable, startGateway, type TestGateway } from '../../support/gateway.ts';
import { draw, fox, moderate } from '../../support/images.ts';
import { type Answer, send } from '../../support/request.ts';
import { callRows } from '../../support/rows.ts';

let gateway: TestGateway;

afterEach(() => gateway.close());

const EXCEEDED = {
  error: {
    message: expect.stringMatching(
      /^Your organization has made its \d+ requests of this minute\. Try again in \d+ s\.$/,
    ),
    type: 'rate_limit_error',
    param: null,
    code: 'rate_limit_exceeded',
  },
};

/** `[limit, remaining]`, and whether the reset is in OpenAI's form. */
const rateOf = ({ headers }: Answer): unknown[] => [
  headers['x-ratelimit-limit-requests'],
  headers['x-ratelimit-remaining-requests'],
  /^(1m0s|[1-5]?\ds)$/.test(String(headers['x-ratelimit-reset-requests'])),
];
const NO_RATE = [undefined, undefined, false];

const withKey = (more: object = {}) => ({ headers: [bearer(gateway.firstRun.gatewayKey), JSON_TYPE], ...more });

const ENDPOINTS = [
  ['CHAT', () => chat(gateway, hello({ model: 'sandbox-free' }))],
  ['IMAGES', () => draw(gateway, fox())],
  ['MODERATIONS', () => moderate(gateway, { input: 'x' })],
  ['MODELS', () => send(gateway.origin, withKey({ path: '/v1/models' }))],
  ['MODELS', () => send(gateway.origin, withKey({ path: '/v1/models/sandbox-free' }))],
] as const;

describe.each(ENDPOINTS)('%s: an endpoint', (name, request) => {
  it('is limited by its own variable, and tells in each answer what is left', async () => {
    gateway = await startGateway({ [`RATE_LIMIT_${name}_PER_MINUTE`]: '2' });

    const answers = [await request(), await request(), await request()];

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    expect(answers.map(rateOf)).toEqual([
      ['2', '1', true],
      ['2', '0', true],
      ['2', '0', true],
    ]);
    expect([answers[2]?.json, answers[2]?.headers['retry-after']]).toEqual([
      EXCEEDED,
      expect.stringMatching(/^([1-5]?\d|60)$/),
    ]);
    expect(valuesOf(await metricsOf(gateway), 'rate_limited_requests_total')).toEqual({ [name.toLowerCase()]: 1 });
  });
});

it('is 600 or 1,200 by default, each endpoint apart', async () => {
  gateway = await startGateway();

  const answers = [];
  for (const [, request] of ENDPOINTS) answers.push(rateOf(await request()));

  expect(answers.map(([limit, remaining]) => [limit, remaining])).toEqual([
    ['600', '599'],
    ['600', '599'],
    ['1200', '1199'],
    ['1200', '1199'],
    ['1200', '1198'],
  ]);
});

it('is not there when it is off', async () => {
  gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: 'off' });

  const answer = await chat(gateway, hello());

  expect([answer.status, rateOf(answer)]).toEqual([200, NO_RATE]);
});

it('is of the organization: its keys share it', async () => {
  gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '1' });
  const other = addKey(gateway);

  const answers = [await chat(gateway, hello()), await chat(gateway, hello(), { token: other.token })];

  expect(answers.map(({ status }) => status)).toEqual([200, 429]);
});

it('counts whatever becomes of a request: bad, unknown, denied, streamed', async () => {
  gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '5' });
  addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });

  const answers = [
    await chat(gateway, '{'),
    await chat(gateway, hello({ model: 'no-such-model' })),
    await chat(gateway, hello()),
    await chat(gateway, hello({ model: 'sandbox-free', stream: true })),
    await post(gateway, 'text', [bearer(gateway.firstRun.gatewayKey)]),
    await chat(gateway, hello({ model: 'sandbox-free' })),
  ];

  expect(answers.map((answer) => [answer.status, rateOf(answer)[1]])).toEqual([
    [400, '4'],
    [404, '3'],
    [403, '2'],
    [200, '1'],
    [415, '0'],
    [429, '0'],
  ]);
});

it('comes after the key and before the body: who is not let in is not counted, and a refused body is not read', async () => {
  gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '1', MAX_BODY_BYTES: '1000' });
  const disabled = addKey(gateway);
  disable(gateway, disabled.id);
  const large = hello({ user: 'x'.repeat(2000) });

  const strangers = [
    await chat(gateway, hello(), { token: 'nonsense' }),
    await chat(gateway, hello(), { token: disabled.token }),
  ];
  const own = [await chat(gateway, hello()), await chat(gateway, large), await chat(gateway, '{')];

  expect(strangers.map((answer) => [answer.status, rateOf(answer)])).toEqual([
    [401, NO_RATE],
    [401, NO_RATE],
  ]);
  expect(own.map((answer) => answer.status)).toEqual([200, 429, 429]);
  expect([own[1]?.json, callRows(gateway).length]).toEqual([EXCEEDED, 1]);
});

it('does not hold for the catalogue without a key, which belongs to no organization', async () => {
  gateway = await startGateway({ RATE_LIMIT_MODELS_PER_MINUTE: '1' });
  const whole = { path: '/v1/models?include_restricted=true' };

  const answers = [
    await send(gateway.origin, { path: '/v1/models' }),
    await send(gateway.origin, { path: '/v1/models' }),
    await send(gateway.origin, withKey(whole)),
    await send(gateway.origin, withKey(whole)),
  ];

  expect(answers.map((answer) => [answer.status, rateOf(answer)[0]])).toEqual([
    [200, undefined],
    [200, undefined],
    [200, '1'],
    [429, '1'],
  ]);
});
