// A path of the gateway that exists under other methods.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { send } from '../../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

it.each([
  ['GET', '/v1/chat/completions', 'OPTIONS, POST'],
  ['PUT', '/v1/chat/completions', 'OPTIONS, POST'],
  ['DELETE', '/v1/chat/completions', 'OPTIONS, POST'],
  ['PATCH', '/v1/chat/completions', 'OPTIONS, POST'],
  ['POST', '/v1/models', 'GET, HEAD, OPTIONS'],
  ['DELETE', '/health', 'GET, HEAD, OPTIONS'],
])('%s %s is 405 and says what is allowed, with no key asked for', async (method, path, allow) => {
  const answer = await send(gateway.origin, { method, path });

  expect([answer.status, answer.headers.allow, answer.json]).toEqual([
    405,
    allow,
    {
      error: {
        message: `${path} does not take ${method}.`,
        type: 'invalid_request_error',
        param: null,
        code: 'method_not_allowed',
      },
    },
  ]);
});

it('HEAD is answered without a body', async () => {
  const answer = await send(gateway.origin, { method: 'HEAD', path: '/v1/chat/completions' });

  expect([answer.status, answer.headers.allow, answer.text]).toEqual([405, 'OPTIONS, POST', '']);
});

it('OPTIONS tells the methods', async () => {
  const answer = await send(gateway.origin, { method: 'OPTIONS', path: '/v1/chat/completions' });

  expect([answer.status, answer.headers.allow, answer.text]).toEqual([204, 'OPTIONS, POST', '']);
});
