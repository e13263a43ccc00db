import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import * as ours from '../runtime.js';
import { awaitOutput, startChild } from './children.ts';
import { addRules } from './gateway-rules.ts';
import type { Target } from './target.ts';
import { MODEL } from './workload.ts';

const START_MS = 30_000;
/** An emulator takes twenty times as long. */
const EMULATED_START_MS = 600_000;

/** How the process of a gateway is run, where it is not as `npm start` does. */
export interface Runner {
  /** A command and its arguments that run Node; empty: none does. */
  readonly under: readonly string[];
  /** Arguments of Node before its own. */
  readonly nodeArgs: readonly string[];
  /** Whether it exchanges messages with us. */
  readonly hasChannel: boolean;
}

const AS_STARTED: Runner = { under: [], nodeArgs: [], hasChannel: false };

export interface GatewayOptions {
  /** Variables of its environment, besides those that every gateway gets here. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Whose gateway it is; default: ours. */
  readonly checkout?: Checkout;
  readonly runner?: Runner;
}

export interface Gateway {
  readonly target: Target;
  /** The gateway key that first run printed. */
  readonly apiKey: string;
  readonly managementUrl: string;
  readonly masterKey: string;
  readonly child: ChildProcess;
}

async function freePort(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const server = createServer().on('error', reject);
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    server.close(() => (typeof address === 'object' && address !== null ? resolve(address.port) : reject(address)));
  });
  return promise;
}

async function awaitReady(port: number, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      const answer = await fetch(`http://127.0.0.1:${port}/ready`);
      await answer.body?.cancel();
      if (answer.ok) return;
    } catch {
      // Not listening yet.
    }
    if (performance.now() > deadline) throw new Error('the gateway did not become ready');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Nothing of our own environment but what a process needs: a provider's key or a limit set here would change the figures. */
function environment(
  folder: string,
  ports: { gateway: number; management: number },
  upstream: Target,
  more: Readonly<Record<string, string>>,
) {
  return {
    PATH: process.env.PATH ?? '',
    DATA_DIR: path.join(folder, 'data'),
    PORT: String(ports.gateway),
    MANAGEMENT_PORT: String(ports.management),
    SANDBOX: 'off',
    UPSTREAM_BENCH_BASE_URL: `http://127.0.0.1:${upstream.port}/v1`,
    UPSTREAM_BENCH_MODELS: MODEL,
    UPSTREAM_BENCH_PRICES: `${MODEL}=1/2`,
    ACCESS_LOG: path.join(folder, 'access.log'),
    // Counted as ever, and never refused.
    RATE_LIMIT_CHAT_PER_MINUTE: '999999999',
    ...more,
  };
}

/** Where a gateway's code is, and how its `npm start` runs it. */
type Checkout = Pick<typeof ours, 'root' | 'cliCommand'>;

const isCheckout = (module: unknown): module is Checkout =>
  typeof module === 'object' && module !== null && 'root' in module && 'cliCommand' in module;

/** Another checkout; throws where `folder` is not one. */
export async function otherCheckout(folder: string): Promise<Checkout> {
  const module: unknown = await import(pathToFileURL(path.resolve(folder, 'scripts', 'runtime.js')).href);
  if (!isCheckout(module)) throw new Error(`${folder} is no checkout of Portcullis`);
  return module;
}

/**
 * The gateway as `npm start` runs it (the launcher's own command, but without the launcher in between, so that the pid is the
 * serving process), on a database of its own in `folder`, with three scopes of six rules each that let the calls pass.
 */
export async function startGateway(
  folder: string,
  upstream: Target,
  { variables = {}, checkout: { root, cliCommand } = ours, runner = AS_STARTED }: GatewayOptions = {},
): Promise<Gateway> {
  const ports = { gateway: await freePort(), management: await freePort() };
  const errorLog = path.join(folder, 'gateway.err');
  const stderr = openSync(errorLog, 'w');
  const { under, nodeArgs, hasChannel } = runner;
  const waitMs = under.length === 0 ? START_MS : EMULATED_START_MS;
  const [command = process.execPath, ...args] = [...under, process.execPath, ...nodeArgs, ...cliCommand.args, 'serve'];
  const child = startChild(command, args, {
    cwd: root,
    env: { ...cliCommand.env, ...environment(folder, ports, upstream, variables) },
    stdio: ['ignore', 'pipe', stderr, ...(hasChannel ? (['ipc'] as const) : [])],
  });
  closeSync(stderr);
  try {
    const [apiKey = '', masterKey = ''] = await awaitOutput(
      child,
      [/\bpcl_[0-9A-Za-z]{46}\b/, /\bpclm_[0-9A-Za-z]{46}\b/],
      waitMs,
    );
    await awaitReady(ports.gateway, waitMs);
    const managementUrl = `http://127.0.0.1:${ports.management}`;
    await addRules(managementUrl, masterKey);
    const target: Target = {
      name: 'gateway',
      port: ports.gateway,
      pid: child.pid ?? 0,
      streams: true,
      equalBodies: false,
    };
    return { target, apiKey, managementUrl, masterKey, child };
  } catch (error) {
    const said = readFileSync(errorLog, 'utf8').slice(-2_000);
    throw new Error(`the gateway could not be started: ${said || 'it said nothing on stderr'}`, { cause: error });
  }
}
