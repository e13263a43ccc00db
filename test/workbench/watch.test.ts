import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FixtureSources } from '../../src/workbench/fixtures/fixture-source.ts';
import { changeIn } from '../../src/workbench/fixtures/watch.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-watch-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, text: string): string => {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
};

describe('a watch of fixtures', () => {
  it.each<[string, (file: string) => void]>([
    ['written', (file) => writeFileSync(file, 'a: 2\n')],
    ['replaced', (file) => renameSync(write('new.yaml', 'a: 1\n'), file)],
    ['removed', (file) => rmSync(file)],
  ])('notices a file that was %s after it was read and before the watch began', async (_how, change) => {
    const sources = new FixtureSources();
    const file = write('a.yaml', 'a: 1\n');
    sources.read(file);
    expect(sources.areStale).toBe(false);
    change(file);
    expect(sources.areStale).toBe(true);
    await changeIn([file], () => sources.areStale, new AbortController().signal);
  });

  it('waits while nothing has changed, and ends with its signal', async () => {
    const sources = new FixtureSources();
    const file = write('a.yaml', 'a: 1\n');
    sources.read(file);
    const stop = new AbortController();
    const change = changeIn([file], () => sources.areStale, stop.signal).then(() => 'ended');
    await expect(Promise.race([change, new Promise((resolve) => setTimeout(resolve, 300, 'waiting'))])).resolves.toBe(
      'waiting',
    );
    stop.abort();
    await expect(change).resolves.toBe('ended');
  });
});
