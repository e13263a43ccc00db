// DECISION_LOG_FILE under load, over rotation, a crash and a stop: exactly the decisions of the database, in whole lines.
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { portcullis, type ServingProcess, serve } from './running.ts';

let dataDir: string;
let logDir: string;
beforeEach(() => {
  [dataDir, logDir] = [newDataDir(), newDataDir()];
});
afterEach(() => {
  for (const folder of [dataDir, logDir]) rmSync(folder, { recursive: true, force: true });
});

const CALLERS = 8;

/** Calls one after the other by each caller, some of them denied; an answer may not come when the process dies. */
async function load({ origin }: ServingProcess, key: string, calls: number): Promise<void> {
  const models = ['sandbox-free', 'sandbox-free', 'sandbox-paid'];
  const caller = async (): Promise<void> => {
    for (let call = 0; call < calls; call += 1) {
      const body = JSON.stringify({ model: models[call % 3], messages: [{ role: 'user', content: `Hello ${call}` }] });
      const headers = [bearer(key), JSON_TYPE];
      await send(origin, { method: 'POST', path: '/v1/chat/completions', headers, body }).catch(() => undefined);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

it('the file has what the database has', async () => {
  const env = {
    DATA_DIR: dataDir,
    DECISION_LOG_FILE: path.join(logDir, 'decisions.ndjson'),
    DECISION_LOG_MAX_BYTES: '40000',
    DECISION_LOG_KEPT_FILES: '999',
  };
  const first = await serve(env);
  const key = first.key ?? '';
  const denial = await portcullis(['rules', 'add', '--organization', 'deny_models', 'sandbox-paid'], {
    DATA_DIR: dataDir,
  });
  expect(denial.code).toBe(0);
  const loading = load(first, key, 40);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  first.child.kill('SIGKILL');
  await loading;

  const second = await serve(env);
  await load(second, key, 15);
  const metrics = await (await fetch(`${second.management}/metrics`)).text();
  expect(metrics).toContain('portcullis_dropped_decisions_total 0');
  second.child.kill('SIGTERM');
  expect(await second.ended).toMatchObject({ code: 0, stderr: '' });

  const exported = await portcullis(['decisions', 'export', '--to', '2099-01-01'], { DATA_DIR: dataDir });
  const folder = path.dirname(env.DECISION_LOG_FILE);
  const files = readdirSync(folder).filter((name) => !name.endsWith('.position'));
  const texts = files.map((name) => readFileSync(path.join(folder, name), 'utf8'));
  expect(texts.every((text) => text === '' || text.endsWith('\n'))).toBe(true);
  const lines = texts.flatMap(linesOf);
  expect(lines.length).toBeGreaterThan(CALLERS * 15);
  expect(files.length).toBeGreaterThan(2);
  expect(lines.sort()).toEqual(linesOf(exported.stdout).sort());
}, 120_000);

it('a folder that is not there keeps the process from starting, and is not made', async () => {
  const folder = path.join(logDir, 'nope');
  const ended = await portcullis(['serve'], {
    DATA_DIR: dataDir,
    PORT: '0',
    MANAGEMENT_PORT: '0',
    DECISION_LOG_FILE: path.join(folder, 'decisions.ndjson'),
  });
  expect([ended.code, ended.stderr]).toEqual([
    1,
    expect.stringContaining(`DECISION_LOG_FILE: there is no folder ${folder}.`),
  ]);
  expect(existsSync(folder)).toBe(false);
});

it('a path that cannot be written keeps the process from starting', async () => {
  const ended = await portcullis(['serve'], {
    DATA_DIR: dataDir,
    PORT: '0',
    MANAGEMENT_PORT: '0',
    DECISION_LOG_FILE: logDir,
  });
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringMatching(/DECISION_LOG_FILE: cannot write .*EISDIR/)]);
});
