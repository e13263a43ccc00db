// What SQLite itself says of the serving process's own connection.
import { rmSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newDataDir } from '../support/gateway.ts';
import { GUARD_URL } from '../support/network-guard-env.ts';
import { serve } from './running.ts';

let dataDir: string;

beforeEach(() => {
  dataDir = newDataDir();
});

afterEach(() => rmSync(dataDir, { recursive: true, force: true }));

/** SQLite's numbers for `PRAGMA synchronous`. */
const SYNCHRONOUS = { normal: 1, full: 2 } as const;

it.each(['normal', 'full'] as const)('DURABILITY=%s is how the serving process commits', async (durability) => {
  const preload = new URL('tell-synchronous.ts', import.meta.url).href;
  const { child, ended } = await serve({
    DATA_DIR: dataDir,
    DURABILITY: durability,
    NODE_OPTIONS: `--import=${GUARD_URL} --import=${preload}`,
  });
  child.kill('SIGTERM');
  const { stdout } = await ended;
  const told = [...stdout.matchAll(/^closing (\S+): journal_mode=(\w+) synchronous=(\d)$/gm)].map((match) =>
    match.slice(1),
  );
  expect(told.filter(([file = '']) => path.basename(file) === 'portcullis.sqlite')).toEqual([
    [path.join(dataDir, 'portcullis.sqlite'), 'wal', String(SYNCHRONOUS[durability])],
  ]);
});
