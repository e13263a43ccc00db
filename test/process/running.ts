import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { cliCommand } from '../../scripts/runtime.js';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { childEnv } from '../support/network-guard-env.ts';

export const ROOT = path.join(import.meta.dirname, '../..');
export const LAUNCHER = path.join(ROOT, 'scripts/portcullis.js');

type Environment = Readonly<Record<string, string>>;

/** What a process said, and how it ended. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunningProcess {
  readonly child: ChildProcess;
  /** What it has said so far. */
  said(): string;
  /** The same on its standard error. */
  complained(): string;
  readonly ended: Promise<Ended>;
}

/** Starts a process that ends with the test at the latest. */
export function start(command: string, args: readonly string[], env: Environment, cwd = ROOT): RunningProcess {
  const running = spawned(command, args, env, cwd);
  onTestFinished(() => {
    running.child.kill('SIGKILL');
  });
  return running;
}

function spawned(command: string, args: readonly string[], env: Environment, cwd: string): RunningProcess {
  const child = spawn(command, args, { env: childEnv(env), cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return { child, said: () => stdout, complained: () => stderr, ended };
}

/** A command line of `portcullis`, by its launcher, to its end. */
export const portcullis = (args: readonly string[], env: Environment, cwd?: string): Promise<Ended> =>
  start(process.execPath, [LAUNCHER, ...args], env, cwd).ended;

export interface ServingProcess extends RunningProcess {
  readonly origin: string;
  readonly management: string;
  /** The first run's gateway key, if this was the first run. */
  readonly key: string | undefined;
}

const QUIET: Environment = { PORT: '0', MANAGEMENT_PORT: '0', ACCESS_LOG: 'off' };

type ServeEnvironment = Environment & { readonly DATA_DIR: string };

/**
 * `portcullis serve`, once it is ready. The process is started without the launcher, so that a signal reaches the process
 * that listens.
 */
export async function serve(env: ServeEnvironment): Promise<ServingProcess> {
  const isFirst = !existsSync(databasePath(env.DATA_DIR));
  return untilServing(start(process.execPath, [...cliCommand.args, 'serve'], serveEnv(env)), isFirst);
}

/** The same by a checkout of another commit, which has its own `node_modules`. */
export function serveCheckout(folder: string, env: ServeEnvironment): Promise<ServingProcess> {
  const isFirst = !existsSync(databasePath(env.DATA_DIR));
  const args = [...cliCommand.args.slice(0, -1), path.join(folder, 'src/cli.ts'), 'serve'];
  return untilServing(start(process.execPath, args, serveEnv(env), folder), isFirst);
}

/** The same for all tests of a file; its last hook must end the process. @param nodeArgs for Node itself */
export async function serveTests(env: ServeEnvironment, nodeArgs: readonly string[]): Promise<ServingProcess> {
  const isFirst = !existsSync(databasePath(env.DATA_DIR));
  const args = [...nodeArgs, ...cliCommand.args, 'serve'];
  return untilServing(spawned(process.execPath, args, serveEnv(env), ROOT), isFirst);
}

const serveEnv = (env: Environment): Environment => ({ ...cliCommand.env, ...QUIET, ...env });

async function untilServing(running: RunningProcess, isFirst: boolean): Promise<ServingProcess> {
  const text = await saying(running, isFirst ? /Try it:[\s\S]* -d '.*'\n/ : /management {2}\S+\n/);
  const origin = /gateway {5}(\S+)/.exec(text)?.[1];
  const management = /management {2}(\S+)/.exec(text)?.[1];
  if (origin === undefined || management === undefined) throw new Error(`no addresses in ${text}`);
  return { ...running, origin, management, key: /gateway key {2}(\S+)/.exec(text)?.[1] };
}

/** All that the process has said, once it has said what is awaited. */
export async function saying({ child, said, ended }: RunningProcess, awaited: RegExp): Promise<string> {
  while (!awaited.test(said())) {
    const end = await Promise.race([once(child.stdout ?? child, 'data'), ended]);
    if (!Array.isArray(end) && !awaited.test(said())) throw new Error(`ended early: ${JSON.stringify(end)}`);
  }
  return said();
}
