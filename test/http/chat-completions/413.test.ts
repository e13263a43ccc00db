// POST /v1/chat/completions: a body larger than the bound.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearer, chat, hello, JSON_TYPE, post } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';

const MAX = 2000;
let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ MAX_BODY_BYTES: String(MAX) });
});

afterAll(() => gateway.close());

const TOO_LARGE = {
  error: {
    message: `The request body is larger than ${MAX} bytes.`,
    type: 'invalid_request_error',
    param: null,
    code: 'request_too_large',
  },
};

/** A request of exactly so many bytes. */
function sized(bytes: number): string {
  const empty = JSON.stringify(hello({ user: '' }));
  return JSON.stringify(hello({ user: 'x'.repeat(bytes - empty.length) }));
}

it('is served at the bound and refused one byte above it', async () => {
  const [fits, tooLarge] = [await chat(gateway, sized(MAX)), await chat(gateway, sized(MAX + 1))];

  expect([fits.status, tooLarge.status, tooLarge.json]).toEqual([200, 413, TOO_LARGE]);
});

it('is refused without a stated length too', async () => {
  const headers = [bearer(gateway.firstRun.gatewayKey), JSON_TYPE, ['transfer-encoding', 'chunked']] as const;

  const [fits, tooLarge] = [await post(gateway, sized(MAX), headers), await post(gateway, sized(MAX + 1), headers)];

  expect([fits.status, tooLarge.status, tooLarge.json]).toEqual([200, 413, TOO_LARGE]);
});

it('counts bytes, not characters', async () => {
  const body = JSON.stringify(hello({ user: 'é'.repeat(MAX / 2) }));

  expect((await chat(gateway, body)).status).toBe(413);
});
