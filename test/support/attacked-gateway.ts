import { once } from 'node:events';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ServingProcess, serveTests } from '../process/running.ts';
import { newDataDir } from './gateway.ts';

/** A gateway in a process of its own, whose memory is bounded, between those who attack it and a caller who does not. */
export interface AttackedGateway {
  readonly process: ServingProcess;
  /** Asks so many times at once; what comes back is measured and thrown away. */
  ask(path: string, body: object, times?: number): Promise<Summary[]>;
  /** The outcome of the attack, and the longest that a second caller waited for an answer meanwhile, in milliseconds. */
  during<T>(attack: () => Promise<T>): Promise<{ readonly value: T; readonly longestMs: number }>;
  /** The most memory that the process had, in megabytes; undefined where the system does not tell. */
  peakMb(): number | undefined;
  close(): Promise<void>;
}

/** The parts of an answer that tests compare. */
export interface Summary {
  readonly status: number;
  readonly bytes: number;
  /** The beginning of the body and, of a long one, its end. */
  readonly text: string;
}

const SHOWN = 2000;

/** Megabytes of heap: a fraction of what hostile answers would fill. */
const HEAP_MB = 192;

export async function startAttackedGateway(env: Readonly<Record<string, string>>): Promise<AttackedGateway> {
  const dataDir = newDataDir();
  const limits = { RATE_LIMIT_CHAT_PER_MINUTE: 'off', RATE_LIMIT_IMAGES_PER_MINUTE: 'off', LOG_LEVEL: 'silent' };
  const serving = await serveTests({ DATA_DIR: dataDir, ...limits, ...env }, [`--max-old-space-size=${HEAP_MB}`]);
  const { origin, key = '', child } = serving;
  const agent = new Agent({ keepAlive: true });

  async function askOnce(path: string, body: object): Promise<Summary> {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-no-cache': 'true' };
    const asked = request(origin + path, { method: 'POST', headers, agent });
    asked.end(JSON.stringify(body));
    const [response]: IncomingMessage[] = await once(asked, 'response');
    if (response === undefined) throw new Error('no response');
    return summary(response);
  }

  async function secondCaller(until: { over: boolean }): Promise<number> {
    let longest = 0;
    while (!until.over) {
      const startedAt = performance.now();
      const { status } = await askOnce('/v1/chat/completions', {
        model: 'sandbox-free',
        messages: [{ role: 'user', content: 'Are you there?' }],
      });
      if (status !== 200) throw new Error(`the second caller got ${status}`);
      longest = Math.max(longest, performance.now() - startedAt);
      await sleep(10);
    }
    return longest;
  }

  return {
    process: serving,
    ask: (path, body, times = 1) => Promise.all(Array.from({ length: times }, () => askOnce(path, body))),
    async during(attack) {
      const until = { over: false };
      const calling = secondCaller(until);
      const value = await attack().finally(() => {
        until.over = true;
      });
      return { value, longestMs: await calling };
    },
    peakMb() {
      const file = `/proc/${child.pid}/status`;
      const peak = existsSync(file) ? /VmHWM:\s+(\d+) kB/.exec(readFileSync(file, 'utf8'))?.[1] : undefined;
      return peak === undefined ? undefined : Number(peak) / 1024;
    },
    async close() {
      agent.destroy();
      child.kill('SIGKILL');
      await serving.ended;
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

async function summary(response: IncomingMessage): Promise<Summary> {
  let bytes = 0;
  let head = '';
  let tail = '';
  for await (const chunk of response) {
    bytes += chunk.length;
    if (head.length < SHOWN) head += String(chunk).slice(0, SHOWN);
    else tail = (tail + String(chunk.subarray(-SHOWN))).slice(-SHOWN);
  }
  return { status: response.statusCode ?? 0, bytes, text: head + tail };
}
