// Work that keeps everyone waiting: it is measured, named in the log, and the gateway says that it is not ready.
import { rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { EventLoop, type Section } from '../../src/telemetry/telemetry.ts';
import { saying, serve } from '../process/running.ts';
import { bearer, hello, JSON_TYPE } from '../support/chat.ts';
import { metricsOf } from '../support/exposition.ts';
import { newDataDir, startGateway, type TestGateway } from '../support/gateway.ts';
import { send } from '../support/request.ts';

/** Keeps the thread, as a hostile request would. */
function block(milliseconds: number): void {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}

describe('the event loop', () => {
  let late: { readonly delayMs: number; readonly ran: readonly Section[] }[];
  let delays: number[];
  let loop: EventLoop;

  beforeEach(async () => {
    late = [];
    delays = [];
    loop = new EventLoop({
      onDelay: (delayMs) => delays.push(delayMs),
      onLate: (delayMs, ran) => late.push({ delayMs, ran }),
    });
    await sleep(200);
    late.length = 0;
  });
  afterEach(() => loop.close());

  const told = async (): Promise<void> => {
    while (late.length === 0) await sleep(10);
  };

  it('that was kept for more than 200 ms is reported once, with the work that kept it', async () => {
    const startedAt = performance.now();
    block(500);
    loop.ran('working', startedAt, 123);
    block(100);
    loop.lasted('a commit', 100);
    loop.lasted('another commit', 1);

    await told();
    await sleep(200);
    const [only, ...more] = late.filter(({ delayMs }) => delayMs >= 500);
    expect(more).toEqual([]);
    expect(only?.ran).toEqual(
      expect.arrayContaining([
        { what: 'working', ms: expect.any(Number), bytes: 123 },
        { what: 'a commit', ms: 100 },
      ]),
    );
    expect(only?.ran.map(({ what }) => what)).not.toContain('another commit');
    expect(Math.max(...delays)).toBeGreaterThanOrEqual(500);
  });

  it('counts as late at once, and for a second, then no more', async () => {
    while (loop.isLate()) await sleep(20);
    block(500);
    const during = loop.isLate();
    await told();
    const after = loop.isLate();
    while (loop.isLate()) await sleep(20);

    expect([during, after]).toEqual([true, true]);
  });

  it('tells of collections of garbage that kept it', async () => {
    const kept: object[][] = [];
    const startedAt = performance.now();
    while (performance.now() - startedAt < 600) kept.push(Array.from({ length: 50_000 }, (_, i) => ({ i })));
    expect(kept.length).toBeGreaterThan(0);

    await told();
    expect(late[0]?.ran.map(({ what }) => what)).toContain('garbage collection');
  });
});

describe('a gateway whose event loop is late', () => {
  let gateway: TestGateway;

  beforeEach(async () => {
    gateway = await startGateway();
  });
  afterEach(() => gateway.close());

  const ready = async (): Promise<unknown[]> => {
    const answers = [
      await send(gateway.origin, { path: '/ready' }),
      await send(gateway.management, { path: '/ready' }),
    ];
    return answers.map(({ status, json }) => [status, json]);
  };

  it('is not ready, and ready again soon after', async () => {
    block(500);

    expect(await ready()).toEqual(Array(2).fill([503, { status: 'not_ready', reason: 'overloaded' }]));
    while (JSON.stringify(await ready()).includes('not_ready')) await sleep(50);
  });

  it('shows it in the metrics', async () => {
    block(600);
    await sleep(200);

    const families = await metricsOf(gateway);
    const { samples = [] } = families.find(({ name }) => name === 'portcullis_event_loop_delay_seconds') ?? {};
    const upTo = (le: string): number => samples.find(({ labels }) => labels.le === le)?.value ?? Number.NaN;
    expect(upTo('+Inf')).toBeGreaterThan(1);
    expect(upTo('+Inf') - upTo('0.5')).toBeGreaterThanOrEqual(1);
  });
});

it('the log names the request body that kept everyone waiting, with its size', async () => {
  const dataDir = newDataDir();
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const server = await serve({
    DATA_DIR: dataDir,
    MAX_JSON_VALUES: '999999999',
    MAX_JSON_FIELDS: '999999999',
    MAX_BUFFERED_BYTES: '9999999999',
  });
  const fields = Array.from({ length: 600_000 }, (_, i) => `"field${i}":0`).join();
  const body = `${JSON.stringify(hello()).slice(0, -1)},"user":{${fields}}}`;
  const headers = [bearer(server.key ?? ''), JSON_TYPE];

  await send(server.origin, { method: 'POST', path: '/v1/chat/completions', headers, body });

  const text = await saying(server, /"the event loop was late[^\n]*\n/);
  const line: unknown = JSON.parse(text.split('\n').find((each) => each.includes('the event loop was late')) ?? '');
  expect(line).toMatchObject({
    level: 40,
    delayMs: expect.any(Number),
    ran: expect.arrayContaining([{ what: 'parsing a request body', ms: expect.any(Number), bytes: body.length }]),
  });
});
