// A request for a host that the listener does not serve: a web page must not reach it by rebinding its own name.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ PUBLIC_URL: 'https://ai.example.org/', ALLOWED_HOSTS: 'Gate.internal,10.0.0.9:9999' });
});

afterAll(() => gateway.close());

const MISDIRECTED = {
  error: {
    message:
      'This gateway does not serve the host named in the request. PUBLIC_URL and ALLOWED_HOSTS say under which names it is reached.',
    type: 'invalid_request_error',
    param: null,
    code: 'misdirected_request',
  },
};

const listeners = () => [gateway.origin, gateway.management];

describe('a foreign host', () => {
  it.each([
    'evil.example',
    'localhost.evil.example',
    'evil.example:8080',
    '127.0.0.1.evil.example',
    '127.0.0.2',
    'example.org',
    'xlocalhost',
    'localhost@evil.example',
    '',
  ])('is refused on both listeners, on every path: %j', async (host) => {
    const requests = listeners().flatMap((origin) =>
      ['/health', '/v1/models', '/nothing'].map((path) => send(origin, { path, headers: [['Host', host]] })),
    );

    const answers = await Promise.all(requests);

    expect(answers.map(({ status, json }) => [status, json])).toEqual(answers.map(() => [421, MISDIRECTED]));
  });
});

describe('the bound address, loopback names, PUBLIC_URL and ALLOWED_HOSTS', () => {
  it.each([
    '127.0.0.1',
    'localhost',
    'LOCALHOST:1',
    '[::1]:8080',
    'ai.example.org',
    'AI.example.org:443',
    'gate.internal',
    '10.0.0.9',
  ])('are served on both listeners, with any port: %s', async (host) => {
    const answers = await Promise.all(
      listeners().map((origin) => send(origin, { path: '/health', headers: [['Host', host]] })),
    );

    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  });
});
