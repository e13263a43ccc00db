import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { makeFolders } from '../src/lib/files.ts';

it('makes those that are missing, with the given mode', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const made = join(folder, 'a', 'b');

  makeFolders(made, 0o700);
  makeFolders(made, 0o700);

  const modes = [join(folder, 'a'), made].map((each) => statSync(each).mode & 0o777);
  expect(modes).toEqual(process.platform === 'win32' ? [0o666, 0o666] : [0o700, 0o700]);
});

it.runIf(process.platform === 'linux')('says that nobody can make one under /proc, and ends', () => {
  expect(() => makeFolders('/proc/portcullis/backup')).toThrow('ENOENT');
});
