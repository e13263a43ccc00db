// Rate limits in shared memory: the same answers as those of one thread, and exact when several count at once.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { beforeEach, expect, it } from 'vitest';
import { createTakeRate } from '../../../src/core/access/rate-limit.ts';
import { createRateWindows, createSharedTakeRate } from '../../../src/core/access/shared-rates.ts';

const LIMITS = { chat: 2, images: 1, models: undefined, moderations: 0, mcp: undefined, management: undefined };

let now: number;
const clock = (): number => now;
beforeEach(() => {
  now = 1_000_000;
});

it('answers as one thread alone does, whichever of the threads is asked', () => {
  const windows = createRateWindows();
  const shared = [1, 2].map(() => createSharedTakeRate(LIMITS, windows, clock));
  const alone = createTakeRate(LIMITS, clock);
  for (let i = 0; i < 60; i += 1) {
    now += 7_000;
    for (const [endpoint, caller] of [
      ['chat', 'org_1'],
      ['chat', 'org_2'],
      ['images', 'org_1'],
      ['models', 'org_1'],
      ['sign_in', '192.0.2.1'],
    ] as const) {
      expect(shared[i % 2]?.(endpoint, caller)).toEqual(alone(endpoint, caller));
    }
  }
});

it('keeps 10,000 callers apart', () => {
  const take = createSharedTakeRate(LIMITS, createRateWindows(), clock);
  const callers = Array.from({ length: 10_000 }, (_, index) => `org_${index}`);
  const remaining = [1, 2, 3].map(() => new Set(callers.map((caller) => take('chat', caller)?.remaining)));
  expect(remaining).toEqual([new Set([1]), new Set([0]), new Set([0])]);
});

it('is exact when four threads count at once', async () => {
  const windows = createRateWindows();
  const limits = { ...LIMITS, chat: 75_000 };
  const gate = new Int32Array(new SharedArrayBuffer(4));
  const threads = Array.from(
    { length: 4 },
    () =>
      new Worker(new URL('../../workers/take-rates.ts', import.meta.url), {
        workerData: { limits, windows, requests: 20_000, gate },
      }),
  );
  await Promise.all(threads.map((thread) => once(thread, 'message')));
  const all = Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0]));
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
  const passed = await all;
  expect(passed.reduce((sum, each) => sum + each, 0)).toBe(75_000);
});

it('goes on where a thread has died that was just counting', () => {
  const windows = createRateWindows();
  const take = createSharedTakeRate(LIMITS, windows, clock);
  Atomics.store(windows.lock, 0, 1);
  expect([take('chat', 'org_1')?.remaining, take('chat', 'org_1')?.remaining]).toEqual([1, 0]);
});
