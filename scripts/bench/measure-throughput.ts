import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { awaitOutput, startChild } from './children.ts';
import { cpuSeconds } from './cpu-time.ts';
import type { Target } from './target.ts';
import { bodyTemplate, CHAT_PATH, claimNumbers, requestHeaders } from './workload.ts';

export type LoadTool = 'wrk' | 'autocannon';

export interface ThroughputFigures {
  readonly perSecond: number;
  /** CPU time of the target for each request. */
  readonly cpuUs: number;
}

export const CONNECTIONS = 32;
const SLACK_MS = 15_000;

/** wrk where it is on the PATH, which takes far less of the machine; else autocannon. */
export const findLoadTool = (): LoadTool =>
  spawnSync('wrk', ['-v'], { stdio: 'ignore' }).error === undefined ? 'wrk' : 'autocannon';

function commandOf(tool: LoadTool, url: string, seconds: number): [string, string[]] {
  if (tool === 'autocannon') return [process.execPath, [path.join(import.meta.dirname, 'load-autocannon.ts')]];
  const script = path.join(import.meta.dirname, 'wrk.lua');
  return ['wrk', ['-t', '1', '-c', String(CONNECTIONS), '-d', `${seconds}s`, '-s', script, url]];
}

function environment(target: Target, url: string, apiKey: string, seconds: number): NodeJS.ProcessEnv {
  const { before, after, digits } = bodyTemplate('whole');
  const headers = Object.entries(requestHeaders(apiKey)).map(([name, value]) => `${name}: ${value}`);
  return {
    ...process.env,
    BENCH_URL: url,
    BENCH_SECONDS: String(seconds),
    BENCH_CONNECTIONS: String(CONNECTIONS),
    BENCH_HEADERS: headers.join('\n'),
    BENCH_BODY_BEFORE: before,
    BENCH_BODY_AFTER: after,
    BENCH_BODY_DIGITS: String(digits),
    BENCH_BODY_NUMBER: String(claimNumbers()),
    BENCH_BODY_STEP: target.equalBodies ? '0' : '1',
  };
}

/** Requests over 32 connections for some seconds. A single failed one is an error: figures of failures mean nothing. */
export async function measureThroughput(tool: LoadTool, target: Target, apiKey: string, seconds: number) {
  const url = `http://127.0.0.1:${target.port}${CHAT_PATH}`;
  const [command, args] = commandOf(tool, url, seconds);
  const cpuBefore = cpuSeconds(target.pid);
  const child = startChild(command, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: environment(target, url, apiKey, seconds),
  });
  const [line = ''] = await awaitOutput(child, [/^BENCH \d+ \d+ \d+\n/m], seconds * 1000 + SLACK_MS);
  const cpu = cpuSeconds(target.pid) - cpuBefore;
  const [requests = 0, microseconds = 0, failed = 0] = line.split(' ').slice(1).map(Number);
  if (failed > 0 || requests === 0) throw new Error(`${target.name}: ${failed} of ${requests} requests failed`);
  const figures: ThroughputFigures = { perSecond: (requests * 1e6) / microseconds, cpuUs: (cpu * 1e6) / requests };
  return figures;
}
