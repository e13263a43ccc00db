import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cliCommand, root } from '../runtime.js';
import { DECISIONS } from './analysis-decisions.ts';
import { catalogueVariables, fillWorld, KEYS, MAPPINGS, MODELS } from './analysis-world.ts';
import { startChild } from './children.ts';
import { Connection } from './connection.ts';
import { type Gateway, startGateway } from './gateway.ts';
import type { Progress } from './progress.ts';
import { startUpstream } from './servers.ts';
import { percentile } from './statistics.ts';
import { rawRequests } from './workload.ts';

const IDLE_SECONDS = 5;
/** Between two calls: the machine is to have room for both. */
const PAUSE_MS = 10;

export interface Calls {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface AnalysisFigure {
  readonly name: string;
  /** Whether the aim is of this one. */
  readonly hasAim: boolean;
  readonly seconds: number;
  /** Calls meanwhile. */
  readonly calls: Calls;
}

export interface AnalysisFigures {
  readonly keys: number;
  readonly models: number;
  readonly mappings: number;
  /** Calls while nothing is analysed. */
  readonly idle: Calls;
  readonly analyses: readonly AnalysisFigure[];
}

/** Calls the gateway, one call after the other, until the work is done. */
export async function callWhile({ target, apiKey }: Gateway, work: Promise<unknown>): Promise<Calls> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  const nextRequest = rawRequests(target, apiKey, 'whole');
  const connection = new Connection(target.port);
  const milliseconds: number[] = [];
  try {
    while (!isDone) {
      const { status, nanoseconds } = await connection.exchange(nextRequest());
      if (status !== 200) throw new Error(`the gateway answered ${status}`);
      milliseconds.push(nanoseconds / 1e6);
      await pause(PAUSE_MS);
    }
    await done;
  } finally {
    connection.close();
  }
  return {
    count: milliseconds.length,
    p50Ms: percentile(milliseconds, 0.5),
    p99Ms: percentile(milliseconds, 0.99),
  };
}

async function runCommand(env: NodeJS.ProcessEnv, args: readonly string[]): Promise<void> {
  const child = startChild(process.execPath, [...cliCommand.args, ...args], {
    cwd: root,
    env: { ...cliCommand.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code]: unknown[] = await once(child, 'exit');
  if (code !== 0) throw new Error(`portcullis ${args.join(' ')} ended with ${code}`);
}

/** A draft for the organization: it concerns every key. */
async function draftByApi({ managementUrl, masterKey }: Gateway, what: 'diff' | 'replay', more = {}): Promise<void> {
  const response = await fetch(`${managementUrl}/v1/master/policy/${what}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...more,
      rules: [{ organization: true, ruleType: 'deny_models', ruleValue: { models: ['model-1*'] } }],
    }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`policy/${what} answered ${response.status}: ${text.slice(0, 500)}`);
}

/** Analyses of a thousand keys by command and by API, next to a running gateway. */
export async function measureAnalyses(folder: string, progress: Progress): Promise<AnalysisFigures> {
  mkdirSync(folder);
  progress.say('analysis: starting the servers');
  const upstream = await startUpstream();
  const variables = catalogueVariables(`http://127.0.0.1:${upstream.port}`);
  const gateway = await startGateway(folder, upstream, { variables });
  const dataDir = path.join(folder, 'data');
  progress.say(`analysis: storing ${KEYS} keys and ${DECISIONS} decisions`);
  const { before, after, loggedTo } = await fillWorld(dataDir, variables);
  progress.say('analysis: calls without one');
  await callWhile(gateway, pause(IDLE_SECONDS * 1000)); // Warm-up.
  const idle = await callWhile(gateway, pause(IDLE_SECONDS * 1000));
  const env = { PATH: process.env.PATH ?? '', DATA_DIR: dataDir, ...variables };
  const works: readonly (readonly [name: string, hasAim: boolean, work: () => Promise<void>])[] = [
    ['portcullis access --all --json', true, () => runCommand(env, ['access', '--all', '--json'])],
    ['portcullis policy diff --json', true, () => runCommand(env, ['policy', 'diff', before, after, '--json'])],
    ['portcullis policy lint --json', false, () => runCommand(env, ['policy', 'lint', '--json'])],
    ['POST /v1/master/policy/diff', true, () => draftByApi(gateway, 'diff')],
    [
      'portcullis replay --recorded --json',
      true,
      () => runCommand(env, ['replay', '--recorded', '--to', loggedTo, '--json']),
    ],
    ['POST /v1/master/policy/replay', true, () => draftByApi(gateway, 'replay', { to: loggedTo })],
  ];
  const analyses: AnalysisFigure[] = [];
  for (const [name, hasAim, work] of works) {
    progress.say(`analysis: ${name}`);
    const start = performance.now();
    const running = work().then(() => (performance.now() - start) / 1000);
    const calls = await callWhile(gateway, running);
    analyses.push({ name, hasAim, seconds: await running, calls });
  }
  return { keys: KEYS, models: MODELS, mappings: MAPPINGS, idle, analyses };
}
