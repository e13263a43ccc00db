// A thread that makes so many requests of one caller at once, and tells how many of them passed.
import { parentPort, workerData } from 'node:worker_threads';
import { createSharedTakeRate, type RateWindows } from '../../src/core/access/shared-rates.ts';
import type { RateLimits } from '../../src/domain/rate-limits.ts';

const {
  limits,
  windows,
  requests,
  gate,
}: { limits: RateLimits; windows: RateWindows; requests: number; gate: Int32Array } = workerData;
const take = createSharedTakeRate(limits, windows);
// All begin at once.
parentPort?.postMessage('ready');
Atomics.wait(gate, 0, 0);
let passed = 0;
for (let i = 0; i < requests; i += 1) if (take('chat', 'org_1')?.exceeded === false) passed += 1;
parentPort?.postMessage(passed);
