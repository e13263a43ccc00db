// The way of a call through the source stays short: `npm run path` counts its files.
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const root = path.join(import.meta.dirname, '..', '..');

it('a chat call goes through at most 50 files', { timeout: 120_000 }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/run.js', 'scripts/hot-path.ts'], {
    cwd: root,
  });

  const files = Number(/^(\d+) files, /m.exec(stdout)?.[1]);
  expect(files).toBeGreaterThan(0);
  expect(files).toBeLessThanOrEqual(50);
});
