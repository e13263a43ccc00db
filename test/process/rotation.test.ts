// Rotating the server's own secrets, as an operator does it: stop, rotate, start.
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AuditList } from '../../src/generated/types.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { send } from '../support/request.ts';
import { completion, json, startUpstream, type TestUpstream } from '../support/upstream.ts';
import { portcullis, type ServingProcess, serve } from './running.ts';

let dataDir: string;
let upstream: TestUpstream;

beforeEach(async () => {
  dataDir = newDataDir();
  upstream = await startUpstream();
  upstream.begin(json(completion('Hi')));
});

afterEach(async () => {
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function stop({ child, ended }: ServingProcess): Promise<void> {
  child.kill('SIGTERM');
  await ended;
}

const chat = async (origin: string, token: string | undefined, model: string): Promise<number> => {
  const { status } = await send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(token ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  return status;
};

/** What a gateway key and a master key are answered. */
const works = async ({ origin, management }: ServingProcess, key: string | undefined, master: string) => [
  await chat(origin, key, 'sandbox-free'),
  (await send(management, { path: '/v1/master/keys', headers: [bearer(master)] })).status,
];

/** What the audit log has of the server's own secrets, newest first; its chain holds. */
async function audited(env: Readonly<Record<string, string>>): Promise<object[]> {
  expect((await portcullis(['audit', 'verify'], env)).code).toBe(0);
  const { stdout } = await portcullis(['audit', 'list', '--json'], env);
  const { entries }: AuditList = JSON.parse(stdout);
  return entries
    .filter(({ target }) => target.type === 'pepper' || target.type === 'encryption_key')
    .map(({ action, actor, before, after }) => ({ action, actor: actor.kind, before, after }));
}

it('a pepper: keys go on working, leave the old one as they are used, and it can be dropped', async () => {
  const env = { DATA_DIR: dataDir };
  const first = await serve(env);
  const master = /master key {3}(\S+)/.exec(first.said())?.[1] ?? '';
  await stop(first);

  const [old] = loadSecrets(dataDir, { create: false }).peppers;
  expect((await portcullis(['secrets', 'rotate-pepper'], env)).code).toBe(0);
  const second = await serve(env);
  expect(await works(second, first.key, master)).toEqual([200, 200]);
  await stop(second);

  // Refused if one of them had not left it.
  const [current] = loadSecrets(dataDir, { create: false }).peppers;
  const dropped = await portcullis(['secrets', 'drop-pepper', old.id], env);
  expect([dropped.code, dropped.stderr, dropped.stdout]).toEqual([0, '', `Dropped pepper ${old.id}.\n`]);
  const third = await serve(env);
  expect(await works(third, first.key, master)).toEqual([200, 200]);
  expect(await audited(env)).toEqual([
    { action: 'pepper.drop', actor: 'cli', before: { id: old.id }, after: null },
    { action: 'pepper.rotate', actor: 'cli', before: { id: old.id }, after: { id: current.id } },
  ]);
}, 60_000);

it('a pepper of the environment: a new one before the old', async () => {
  const [old, fresh] = ['ab'.repeat(32), 'cd'.repeat(32)];
  const first = await serve({ DATA_DIR: dataDir, PEPPER: old });
  await stop(first);
  const second = await serve({ DATA_DIR: dataDir, PEPPER: `${fresh},${old}` });
  expect(await chat(second.origin, first.key, 'sandbox-free')).toBe(200);
  await stop(second);
  // The master key has not left the old one.
  const early = await portcullis(['serve'], { DATA_DIR: dataDir, PEPPER: fresh });
  expect([early.code, early.stderr]).toEqual([
    1,
    expect.stringMatching(
      /^portcullis: \S+portcullis\.sqlite needs secrets that are not there: pepper [0-9a-f]{8} \(1\)\. Put the pepper back into PEPPER, or give up its keys \(portcullis secrets drop-pepper <id> --force\)\.\n$/,
    ),
  ]);

  const master = /master key {3}(\S+)/.exec(first.said())?.[1] ?? '';
  const third = await serve({ DATA_DIR: dataDir, PEPPER: `${fresh},${old}` });
  expect(await works(third, first.key, master)).toEqual([200, 200]);
  await stop(third);
  const fourth = await serve({ DATA_DIR: dataDir, PEPPER: fresh });
  expect(await works(fourth, first.key, master)).toEqual([200, 200]);
});

it('an encryption key: provider keys go on working, sealed again', async () => {
  const env = { DATA_DIR: dataDir, OPENAI_BASE_URL: `${upstream.origin}/v1` };
  const first = await serve(env);
  const add = ['provider-keys', 'add', 'openai', '--label', 'Own', '--token-env', 'TOKEN'];
  expect((await portcullis(add, { ...env, TOKEN: 'sk-customer' })).stderr).toBe('');
  expect(await chat(first.origin, first.key, 'gpt-5-mini')).toBe(200);
  await stop(first);
  const [before] = loadSecrets(dataDir, { create: false }).encryptionKeys;

  const rotated = await portcullis(['secrets', 'rotate-encryption-key'], env);
  expect([rotated.code, rotated.stderr, rotated.stdout]).toEqual([
    0,
    '',
    expect.stringMatching(/^The encryption key is [0-9a-f]{8}\. Provider keys sealed again: 1\.\n$/),
  ]);
  const after = loadSecrets(dataDir, { create: false }).encryptionKeys.map(({ id }) => id);
  expect(after).toEqual([expect.not.stringContaining(before.id)]);
  expect(await audited(env)).toEqual([
    {
      action: 'encryption_key.rotate',
      actor: 'cli',
      before: { id: before.id },
      after: { id: after[0] },
    },
  ]);
  const second = await serve(env);
  expect(await chat(second.origin, first.key, 'gpt-5-mini')).toBe(200);
  expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual(Array(2).fill('Bearer sk-customer'));
});
