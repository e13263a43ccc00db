// The gateway on three threads: real threads, real HTTP. Each request comes on a connection of its own, which the kernel deals out.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { createContainer } from '../../src/container.ts';
import { chat, completionOf, errorOf, eventsOf, hello } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import {
  addKey,
  addRule,
  disable,
  newDataDir,
  removeRule,
  startGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { addOwnModels, FLAT } from '../support/own-models.ts';
import type { Answer } from '../support/request.ts';
import { callRow, callRows, decisionRows, keySums } from '../support/rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  writeEvents,
} from '../support/upstream.ts';

const CALL = 10_000_000_000n;
/** So many requests miss one of three threads less often than once in a million times. */
const ALL_THREADS = 40;

let upstream: TestUpstream;
let gateway: TestGateway;
/** The gateway's own threads. */
let threads: Worker[];

const noteThread = (worker: Worker): void => {
  if (worker.threadName?.startsWith('gateway ') === true) threads.push(worker);
};

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  threads = [];
  process.on('worker', noteThread);
  upstream = await startUpstream();
  gateway = await startGateway({
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
    RATE_LIMIT_CHAT_PER_MINUTE: '1000000',
    WORKERS: '3',
    ...env,
  });
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, { flat: FLAT });
}

afterEach(async () => {
  process.off('worker', noteThread);
  await gateway.close();
  await upstream.close();
});

const times = <T>(count: number, make: (index: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

const own = (more: object = {}) => hello({ model: 'own/flat', ...more });

const statuses = (answers: readonly Answer[]): number[] => [...new Set(answers.map(({ status }) => status))];

describe('on three threads', () => {
  it('calls, streams and denials are answered and on record as on one', async () => {
    await start();
    const whole = await times(ALL_THREADS, () => chat(gateway, own()));
    expect(whole.map((answer) => completionOf(answer).usage.cost)).toEqual(whole.map(() => 0.01));
    expect(whole.map((answer) => callRow(gateway, answer)).map((row) => [row.state, row.cost])).toEqual(
      whole.map(() => ['settled', CALL]),
    );

    upstream.begin(events(chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop'), USAGE_CHUNK));
    const streams = await times(ALL_THREADS, () => chat(gateway, own({ stream: true })));
    expect(streams.map(({ text }) => eventsOf(text).done)).toEqual(streams.map(() => true));
    expect(streams.map((answer) => callRow(gateway, answer).state)).toEqual(streams.map(() => 'settled'));

    const rule = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['own/*'] } });
    const denied = await times(ALL_THREADS, () => chat(gateway, own()));
    expect(denied.map((answer) => errorOf(answer).code)).toEqual(denied.map(() => 'permission_denied'));
    expect(denied.map((answer) => callRow(gateway, answer).state)).toEqual(denied.map(() => 'denied'));
    expect(decisionRows(gateway)).toHaveLength(3 * ALL_THREADS);

    removeRule(gateway, 'key', rule.id);
    upstream.begin(json(completion('Hello')));
    expect(statuses(await times(ALL_THREADS, () => chat(gateway, own())))).toEqual([200]);
  });

  it('what another process changes holds on the next call of each thread', async () => {
    await start();
    const { id, token } = addKey(gateway);
    expect(statuses(await times(ALL_THREADS, () => chat(gateway, own(), { token })))).toEqual([200]);
    for (const scope of ['key', 'member', 'organization'] as const) {
      const rule = addRule(gateway, scope, { ruleType: 'deny_models', ruleValue: { models: ['own/*'] } });
      const first = { token: scope === 'key' ? gateway.firstRun.gatewayKey : token };
      expect(statuses(await times(ALL_THREADS, () => chat(gateway, own(), first)))).toEqual([403]);
      removeRule(gateway, scope, rule.id);
      expect(statuses(await times(ALL_THREADS, () => chat(gateway, own(), first)))).toEqual([200]);
    }
    disable(gateway, id);
    expect(statuses(await times(ALL_THREADS, () => chat(gateway, own(), { token })))).toEqual([401]);
  });

  it.each([
    ['whole answers', false],
    ['streams', true],
  ])(
    'of 64 callers for %s on a key with room for ten calls, ten are served, three times in a row',
    async (_, stream) => {
      await start();
      for (let round = 0; round < 3; round += 1) {
        upstream.begin(async (response, received) => {
          await sleep(Math.random() * 4);
          const reply = stream
            ? events(chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop'), USAGE_CHUNK)
            : json(completion('Hello'));
          await reply(response, received);
        });
        const key = addKey(gateway, { usageLimit: '0.1' });
        const answers = await times(64, () => chat(gateway, own({ stream }), key));
        const refusals = answers.filter(({ status }) => status !== 200).map((answer) => errorOf(answer).code);
        expect(new Set(refusals).difference(new Set(['usage_limit_reached', 'budget_reserved']))).toEqual(new Set());
        expect(answers.length - refusals.length).toBe(10);
        expect(upstream.received).toHaveLength(10);
        expect(keySums(gateway, key.id)).toMatchObject({ usage: 10n * CALL, reserved: 0n });
      }
    },
  );

  it('a rate limit counts the requests of all threads', async () => {
    await start({ RATE_LIMIT_CHAT_PER_MINUTE: '25' });
    const answers = await times(64, () => chat(gateway, own()));
    const passed = answers.filter(({ status }) => status === 200);
    expect(
      passed.map(({ headers }) => Number(headers['x-ratelimit-remaining-requests'])).sort((a, b) => a - b),
    ).toEqual(Array.from({ length: 25 }, (_, index) => index));
    expect(new Set(answers.filter((each) => !passed.includes(each)).map((each) => errorOf(each).code))).toEqual(
      new Set(['rate_limit_exceeded']),
    );
  });

  it('metrics are the sum, and there is one access log', async () => {
    const log = path.join(newDataDir(), 'access.log');
    await start({ ACCESS_LOG: log, LOG_LEVEL: 'warn' });
    const answers = await times(ALL_THREADS, () => chat(gateway, own()));
    expect(valuesOf(await metricsOf(gateway), 'calls_total')).toEqual({ 'chat custom custom none': ALL_THREADS });
    await gateway.container.close();
    const lines: unknown[] = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).requestId);
    expect(lines.filter((id) => answers.some(({ headers }) => headers['x-request-id'] === id))).toHaveLength(
      ALL_THREADS,
    );
    gateway = { ...gateway, close: async () => gateway.db.close() };
  });

  it('a stop lets what runs come to its end, settled, on each thread', async () => {
    await start();
    let running = 0;
    const go = Promise.withResolvers<void>();
    upstream.begin(async (response) => {
      writeEvents(response, chunk({ role: 'assistant', content: 'Hello' }));
      running += 1;
      await go.promise;
      writeEvents(response, chunk({}, 'stop'), USAGE_CHUNK, '[DONE]');
      response.end();
    });
    const streams = times(ALL_THREADS, () => chat(gateway, own({ stream: true })));
    while (running < ALL_THREADS) await sleep(5);
    const closed = gateway.container.close();
    await expect(chat(gateway, own())).rejects.toThrow();
    go.resolve();
    expect((await streams).map(({ text }) => eventsOf(text).done)).toEqual(Array(ALL_THREADS).fill(true));
    await closed;
    expect(callRows(gateway).map(({ state }) => state)).toEqual(Array(ALL_THREADS).fill('settled'));
    expect(await times(threads.length, async (index) => threads[index]?.threadId)).toEqual([-1, -1, -1]);
    gateway = { ...gateway, close: async () => gateway.db.close() };
  });

  it('what a thread leaves open that dies is settled at what was held back, and another thread takes its place', async () => {
    await start();
    await chat(gateway, hello());
    const counted = async () => valuesOf(await metricsOf(gateway), 'calls_total');
    const before = await counted();
    expect(before).toEqual({ 'chat sandbox sandbox-paid none': 1 });
    const key = addKey(gateway, { usageLimit: '1' });
    let running = 0;
    upstream.begin(() => {
      running += 1;
    });
    const lost = times(ALL_THREADS, () => chat(gateway, own(), key).catch(() => 'cut'));
    while (running < ALL_THREADS) await sleep(5);
    expect(keySums(gateway, key.id).reserved).toBe(BigInt(ALL_THREADS) * CALL);
    const [first, ...others] = threads;
    await first?.terminate();
    const ofKey = () => callRows(gateway).filter((row) => row.keyId === key.id);
    while (ofKey().every(({ state }) => state === 'open')) await sleep(5);
    const leftOpen = ofKey().filter(({ state }) => state === 'open').length;
    expect(leftOpen).toBeGreaterThan(0);
    expect(keySums(gateway, key.id)).toMatchObject({
      usage: BigInt(ALL_THREADS - leftOpen) * CALL,
      reserved: BigInt(leftOpen) * CALL,
    });

    for (const other of others) await other.terminate();
    expect(await lost).toEqual(Array(ALL_THREADS).fill('cut'));
    while (ofKey().some(({ state }) => state === 'open')) await sleep(5);
    expect(ofKey().map((row) => [row.state, row.cost, row.errorCode])).toEqual(
      Array(ALL_THREADS).fill(['settled', CALL, 'internal_error']),
    );
    expect(keySums(gateway, key.id)).toMatchObject({ usage: BigInt(ALL_THREADS) * CALL, reserved: 0n });

    upstream.begin(json(completion('Hello')));
    const answer = async (): Promise<number> => {
      for (;;) {
        const { status } = await chat(gateway, own()).catch(() => ({ status: 0 }));
        if (status !== 0) return status;
        await sleep(50);
      }
    };
    expect(await answer()).toBe(200);
    while (threads.length < 6) await sleep(50);
    expect(await counted()).toEqual({ ...before, 'chat custom custom none': 1 });
  });

  it('the address of another gateway is refused as on one', async () => {
    await start();
    const other = { ...gateway.config, dataDir: newDataDir(), gateway: { host: '127.0.0.1', port: portOf(gateway) } };
    await expect(createContainer(other)).rejects.toThrow(
      `PORT: cannot listen on 127.0.0.1:${portOf(gateway)}: the address is in use.`,
    );
  });
});

const portOf = ({ origin }: TestGateway): number => Number(new URL(origin).port);
