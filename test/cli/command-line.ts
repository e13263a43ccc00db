import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { cliCommand } from '../../scripts/runtime.js';
import { type FirstRun, firstRun } from '../../src/admin/sign-in/sign-in-links.ts';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { systemClock } from '../../src/domain/time.ts';
import type { ServedRecord } from '../../src/generated/types.ts';
import { noteServed } from '../../src/store/bundles/served-record.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { loadSecrets, type ServerSecrets } from '../../src/store/secrets/secrets.ts';
import { createStore, type Store } from '../../src/store/store.ts';
import { childEnv } from '../support/network-guard-env.ts';

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandLine {
  readonly folder: string;
  readonly first: FirstRun;
  readonly secrets: ServerSecrets;
  /** The database as a running server holds it: open. */
  readonly store: Store;
  /** Runs `portcullis …` as a process of its own, from a folder that is not the project's. */
  run(...args: string[]): Promise<Outcome>;
  runWith(env: Record<string, string>, ...args: string[]): Promise<Outcome>;
  /** The same with text on standard input. */
  runWithInput(input: string, ...args: string[]): Promise<Outcome>;
  close(): void;
}

/** Runs `portcullis …` as a process of its own on a data directory. */
export const runIn = (folder: string, env: Record<string, string>, ...args: string[]): Promise<Outcome> =>
  start(folder, env, args);

function start(folder: string, env: Record<string, string>, args: readonly string[], input = ''): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    // Without the launcher, which would start a Node more: the tests already run on the pinned one.
    const child = spawn(process.execPath, [...cliCommand.args, ...args], {
      cwd: folder,
      env: childEnv({ ...cliCommand.env, DATA_DIR: folder, ...env }),
    });
    child.stdin.on('error', () => {}).end(input); // who reads none of it may be gone
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

/** A server that has the sandbox alone. */
export const served: ServedRecord = {
  startedAt: '2026-01-05T12:00:00.000Z',
  catalogDate: createCatalog({ sandbox: true, upstreams: [], clock: systemClock }).date,
  bundleDigest: 'none',
  trustedProxies: null,
  sandbox: true,
  providers: [],
  upstreams: [],
};

/** The last line of a command that judges access on such a data directory. */
export const JUDGED_BY = 'Judged by what the server of 2026-01-05T12:00:00.000Z serves: sandbox.\n';

/** A data directory after its first start, and the command that works on it. */
export async function createCommandLine(): Promise<CommandLine> {
  const folder = mkdtempSync(path.join(tmpdir(), 'portcullis-'));
  const secrets = loadSecrets(folder, { create: true });
  const store = createStore({
    path: databasePath(folder),
    clock: systemClock,
    create: true,
    auditKey: secrets.signingKey.key,
  });
  const first = await store.write((db, now) => firstRun(db, secrets.peppers[0], now));
  if (first === undefined) throw new Error('the database was not empty');
  noteServed(folder, served);
  return {
    folder,
    first,
    secrets,
    store,
    run: (...args) => start(folder, {}, args),
    runWith: (env, ...args) => start(folder, env, args),
    runWithInput: (input, ...args) => start(folder, {}, args, input),
    close() {
      store.close();
      rmSync(folder, { recursive: true });
    },
  };
}

/** What a command prints that did its work and printed JSON. */
export function jsonOf({ code, stdout, stderr }: Outcome): unknown {
  if (code !== 0 || stderr !== '') throw new Error(`exit code ${code}: ${stderr}`);
  const value: unknown = JSON.parse(stdout);
  return value;
}
