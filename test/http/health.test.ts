// GET /health and /ready, on both listeners.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ManualClock } from '../../src/domain/time.ts';
import { readBundle } from '../../src/policy/bundle.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

let gateway: TestGateway;
/** That of this installation. */
const policy = {
  digest: readBundle().digest.slice(0, 12),
  revision: null,
  activatedAt: expect.stringMatching(/^20\d\d-/),
};

beforeAll(async () => {
  gateway = await startGateway();
  // On a busy machine the start itself may have kept the event loop.
  while ((await send(gateway.origin, { path: '/ready' })).status !== 200);
});

afterAll(() => gateway.close());

it.each(['origin', 'management'] as const)(
  'the %s lives and is ready, and needs no key to say so',
  async (listener) => {
    const answers = [
      await send(gateway[listener], { path: '/health' }),
      await send(gateway[listener], { path: '/ready' }),
    ];

    expect(answers.map(({ status, json }) => [status, json])).toEqual([
      [200, { status: 'ok' }],
      [200, { status: 'ready', policy }],
    ]);
    expect(answers.every(({ headers }) => /^req_/.test(String(headers['x-request-id'])))).toBe(true);
  },
);

it('is not ready while nothing can be recorded, and ready again afterwards', async () => {
  const clock = new ManualClock('2026-11-22T12:00:00Z');
  const other = await startGateway({}, { clock });
  const ready = async () => {
    clock.advance(1000);
    const { status, json } = await send(other.origin, { path: '/ready' });
    return [status, json];
  };
  other.db.connection.exec('BEGIN IMMEDIATE');
  const during = await ready();
  other.db.connection.exec('ROLLBACK');
  // Waiting for the lock has kept the event loop.
  await expect.poll(ready, { timeout: 20_000 }).toEqual([200, { status: 'ready', policy }]);
  await other.close();

  expect(during).toEqual([503, { status: 'not_ready', reason: 'cannot_record' }]);
});

it('the gateway does not serve the master API, nor the management host the gateway', async () => {
  const answers = [
    await send(gateway.origin, { path: '/v1/master/keys' }),
    await send(gateway.management, { path: '/v1/models' }),
    await send(gateway.management, { method: 'POST', path: '/v1/chat/completions' }),
  ];

  expect(answers.map(({ status }) => status)).toEqual([404, 404, 404]);
});
