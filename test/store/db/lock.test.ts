import { expect, onTestFinished, test } from 'vitest';
import { lockDataDir } from '../../../src/store/db/data-dir.ts';
import { startChild } from '../child.ts';
import { temporaryDirectory } from '../fixture.ts';

test('a data directory is served by one process, and is free again when that one is killed', async () => {
  const dataDir = temporaryDirectory();
  const child = await startChild('hold-lock.ts', [dataDir]);
  expect(await child.line()).toBe('locked');
  expect(() => lockDataDir(dataDir)).toThrow(`Another process is already using the data directory ${dataDir}.`);
  await child.kill();
  const lock = lockDataDir(dataDir);
  onTestFinished(() => lock.release());
});

test('a released lock can be taken again, a held one not even by the same process', () => {
  const dataDir = temporaryDirectory();
  const lock = lockDataDir(dataDir);
  expect(() => lockDataDir(dataDir)).toThrow('Another process is already using');
  lock.release();
  lockDataDir(dataDir).release();
});
