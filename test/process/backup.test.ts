// What an operator does when a disk is gone: back up a server under load, restore elsewhere, go on.
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AuditList } from '../../src/generated/types.ts';
import { databasePath } from '../../src/store/db/data-dir.ts';
import { type Database, openDatabase } from '../../src/store/db/database.ts';
import { bearer, JSON_TYPE } from '../support/chat.ts';
import { newDataDir } from '../support/gateway.ts';
import { type Answer, send } from '../support/request.ts';
import { callRows, keySums } from '../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';
import { portcullis, serve } from './running.ts';

let folder: string;
let upstream: TestUpstream;

beforeEach(async () => {
  folder = newDataDir();
  upstream = await startUpstream();
});

afterEach(async () => {
  await upstream.close();
  rmSync(folder, { recursive: true, force: true });
});

const chat = (origin: string, token: string | undefined): Promise<Answer> =>
  send(origin, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: [bearer(token ?? ''), JSON_TYPE, ['x-no-cache', 'true']],
    body: JSON.stringify({ model: 'large', messages: [{ role: 'user', content: 'Hello' }] }),
  });

function inDatabase<T>(dataDir: string, work: (db: Database) => T): T {
  const db = openDatabase(databasePath(dataDir), { readonly: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}

const requestIds = (dataDir: string, state: string): string[] =>
  inDatabase(dataDir, (db) =>
    callRows({ db })
      .filter((row) => row.state === state)
      .map((row) => row.requestId),
  );

it('a backup made under load is whole: restored elsewhere it works with the same keys, and what was open is recovered', async () => {
  const old = path.join(folder, 'old');
  const fresh = path.join(folder, 'fresh');
  const backup = path.join(folder, 'backup');
  mkdirSync(old);
  const settings = upstreamEnv('acme', upstream.origin, 'large', 'large=2/8');
  const first = await serve({ ...settings, DATA_DIR: old });
  upstream.begin(json(completion('Hi')));
  const before = await Promise.all(Array.from({ length: 20 }, () => chat(first.origin, first.key)));
  // One that stays open over the backup, among many that come and go.
  const held = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  upstream.begin((response, received) => {
    arrived.resolve();
    void held.promise.then(() => json(completion('late'))(response, received));
  });
  const late = chat(first.origin, first.key);
  await arrived.promise;
  upstream.begin(json(completion('Hi')));
  let busy = true;
  const callers = Array.from({ length: 4 }, async () => {
    while (busy) await chat(first.origin, first.key);
  });
  const made = await portcullis(['backup', backup, '--json'], { ...settings, DATA_DIR: old });
  busy = false;
  await Promise.all(callers);
  const after = await chat(first.origin, first.key);
  held.resolve();
  expect((await late).status).toBe(200);
  first.child.kill('SIGTERM');
  await first.ended;
  expect([made.code, made.stderr]).toEqual([0, '']);

  const restored = await portcullis(['restore', backup], { ...settings, DATA_DIR: fresh });
  expect([restored.code, restored.stderr, restored.stdout]).toEqual([
    0,
    '',
    expect.stringMatching(/^Restored the database of 2\S+Z\.\n$/),
  ]);
  // Nobody else reads what lies there.
  expect(readdirSync(fresh).map((name) => statSync(path.join(fresh, name)).mode & 0o077)).toEqual(
    readdirSync(fresh).map(() => 0),
  );
  const second = await serve({ ...settings, DATA_DIR: fresh });

  const ids = (answers: readonly Answer[]): string[] => answers.map(({ headers }) => String(headers['x-request-id']));
  const settled = requestIds(fresh, 'settled');
  expect(ids(before).filter((id) => !settled.includes(id))).toEqual([]);
  expect(settled).not.toContain(ids([after])[0]);
  expect(requestIds(fresh, 'recovered')).toContain(ids([await late])[0]);
  expect(requestIds(fresh, 'open')).toEqual([]);
  expect((await chat(second.origin, first.key)).status).toBe(200);
  const sums = inDatabase(fresh, (db) => {
    const rows = callRows({ db });
    return [keySums({ db }, rows[0]?.keyId ?? '').usage, rows.reduce((sum, row) => sum + row.cost, 0n)];
  });
  expect(sums[0]).toBe(sums[1]);
  const audit = await portcullis(['audit', 'verify'], { ...settings, DATA_DIR: fresh });
  expect([audit.code, audit.stderr]).toEqual([0, '']);
  const listed = await portcullis(['audit', 'list', '--json', '--action', 'database.restore'], { DATA_DIR: fresh });
  const { entries }: AuditList = JSON.parse(listed.stdout);
  const { sha256, createdAt } = JSON.parse(made.stdout).backup;
  expect(entries.map(({ actor, before, after }) => [actor.kind, before, after])).toEqual([
    ['cli', null, { id: sha256, createdAt }],
  ]);
});

it('a backup is not restored over a server that runs', async () => {
  const backup = path.join(folder, 'backup');
  const dataDir = path.join(folder, 'data');
  await serve({ DATA_DIR: dataDir });
  expect((await portcullis(['backup', backup], { DATA_DIR: dataDir })).code).toBe(0);

  const refused = await portcullis(['restore', backup, '--force'], { DATA_DIR: dataDir });
  expect([refused.code, refused.stderr]).toEqual([
    1,
    `portcullis: Another process is already using the data directory ${dataDir}. Stop it first, and start it again afterwards.\n`,
  ]);
});
