// A path that is no valid percent-encoding, on both listeners.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

it.each([
  ['origin', '/v1/%zz'],
  ['origin', '/v1/chat/completions%ff'],
  ['management', '/v1/master/keys/%ff'],
] as const)('is 400 in the envelope: %s %s', async (listener, path) => {
  const answer = await send(gateway[listener], { method: 'POST', path });

  expect([answer.status, answer.json]).toEqual([
    400,
    {
      error: {
        message: 'The path of the request is not valid percent-encoding.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request',
      },
    },
  ]);
});
