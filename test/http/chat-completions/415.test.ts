// POST /v1/chat/completions: a body of another type or in an encoding.
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const unsupported = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: 'unsupported_media_type' },
});

it.each([
  undefined,
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/jsonp',
  'application/json-seq',
  'text/plain, application/json',
])('the content type %s is refused', async (type) => {
  const headers = type === undefined ? [] : [['content-type', type] as const];

  const answer = await post(gateway, hello(), [bearer(gateway.firstRun.gatewayKey), ...headers]);

  expect([answer.status, answer.json]).toEqual([415, unsupported('The request body must be application/json.')]);
});

it.each(['application/json', 'Application/JSON; charset=utf-8', 'application/json;charset=UTF-8'])(
  'the content type %s is served',
  async (type) => {
    const answer = await post(gateway, hello(), [bearer(gateway.firstRun.gatewayKey), ['content-type', type]]);

    expect(answer.status).toBe(200);
  },
);

it.each(['gzip', 'br', 'deflate', 'zstd', 'identity, gzip', ''])(
  'the content encoding %j is refused',
  async (encoding) => {
    const body = encoding === 'gzip' ? gzipSync(JSON.stringify(hello())) : JSON.stringify(hello());

    const headers = [bearer(gateway.firstRun.gatewayKey), JSON_TYPE, ['content-encoding', encoding]] as const;
    const answer = await post(gateway, body, headers);

    expect([answer.status, answer.json]).toEqual([
      415,
      unsupported('The request body must not be encoded (content-encoding: identity).'),
    ]);
  },
);

it('the content encoding identity is served', async () => {
  const headers = [bearer(gateway.firstRun.gatewayKey), JSON_TYPE, ['content-encoding', 'Identity']] as const;

  expect((await post(gateway, hello(), headers)).status).toBe(200);
});
