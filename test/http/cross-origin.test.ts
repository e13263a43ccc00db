// Web pages that call the gateway: CORS for the origins of ALLOWED_ORIGINS, and for no others.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, chat, hello } from '../support/chat.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ ALLOWED_ORIGINS: 'https://chat.example' });
});

afterAll(() => gateway.close());

const corsOf = (headers: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('access-control-') || name === 'vary'));

const preflight = (origin: string, to = gateway.origin) =>
  send(to, {
    method: 'OPTIONS',
    path: '/v1/chat/completions',
    headers: [
      ['origin', origin],
      ['access-control-request-method', 'POST'],
      ['access-control-request-headers', 'authorization,content-type'],
    ],
  });

it('a preflight of an allowed origin is answered, without a key', async () => {
  const answer = await preflight('https://chat.example');

  expect([answer.status, corsOf(answer.headers)]).toEqual([
    204,
    {
      vary: 'Origin',
      'access-control-allow-origin': 'https://chat.example',
      'access-control-allow-methods': 'GET,POST',
      'access-control-allow-headers': 'authorization,content-type',
      'access-control-max-age': '600',
    },
  ]);
});

it.each([
  ['an answer', hello(), 200],
  ['a stream', hello({ stream: true }), 200],
  ['an error', hello({ model: 'no-such-model' }), 404],
])('%s can be read by a page of an allowed origin, with the headers that clients act on', async (_, body, status) => {
  const answer = await chat(gateway, body, { headers: [['origin', 'https://chat.example']] });

  expect([answer.status, corsOf(answer.headers)]).toEqual([
    status,
    {
      vary: 'Origin',
      'access-control-allow-origin': 'https://chat.example',
      'access-control-expose-headers': expect.stringContaining('x-request-id'),
    },
  ]);
});

it.each(['https://chat.example.evil.example', 'http://chat.example', 'https://chat.example:8443', 'null'])(
  'a page of another origin learns nothing: %s',
  async (origin) => {
    const refused = await preflight(origin);
    const answer = await chat(gateway, hello(), { headers: [['origin', origin]] });

    expect([refused.status, corsOf(refused.headers), corsOf(answer.headers)]).toEqual([
      204,
      { vary: 'Origin' },
      { vary: 'Origin' },
    ]);
  },
);

it('no page may administer', async () => {
  const path = '/v1/master/keys';
  const headers = [bearer(gateway.firstRun.masterKey), ['origin', 'https://chat.example']] as const;
  const answers = [
    await send(gateway.management, { path, headers }),
    await preflight('https://chat.example', gateway.management),
  ];

  expect(answers.map((answer) => corsOf(answer.headers))).toEqual([{}, {}]);
});

it('is off by default', async () => {
  const bare = await startGateway();
  const answers = [await preflight('https://chat.example', bare.origin), await chat(bare, hello())];
  await bare.close();

  expect(answers.map((answer) => [answer.status, corsOf(answer.headers)])).toEqual([
    [204, {}],
    [200, {}],
  ]);
});
