// POST /v1/moderations: a provider that fails.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { errorOf } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { moderate } from '../../support/images.ts';
import { callRow } from '../../support/rows.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

it.each([
  ['fail:500', 'The provider failed: The sandbox fails with status 500, as asked.'],
  ['fail:empty', 'The provider did not judge every input once.'],
  ['fail:malformed', 'The provider sent a malformed answer.'],
])('is told when none is left, finally, and booked at no cost: %s', async (input, message) => {
  const answer = await moderate(gateway, { input });

  expect([answer.status, answer.headers['x-should-retry'], errorOf(answer)]).toEqual([
    502,
    'false',
    { message, type: 'api_error', param: null, code: 'upstream_error' },
  ]);
  const { state, action, errorCode, cost } = callRow(gateway, answer);
  expect([state, action, errorCode, cost]).toEqual(['settled', 'moderation', 'upstream_error', 0n]);
});
