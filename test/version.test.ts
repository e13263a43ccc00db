// Which version, commit and schema run: read from a checkout without git, from an image, or unknown (src/version.ts).
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import manifest from '../package.json' with { type: 'json' };
import { MIGRATIONS } from '../src/store/migrations/migrate.ts';
import { buildText, readBuild } from '../src/version.ts';

let folder: string;
let checkout: string;

/** Git as on a fresh machine: nobody's settings, and the folder's own repository. */
const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@gateway.example', ...args], {
    cwd,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' },
  }).trim();

const commitOf = (root: string): string => readBuild(root).commit;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'portcullis-version-'));
  checkout = path.join(folder, 'checkout');
  mkdirSync(checkout);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

it('is one line of the version, the commit and the number of the newest migration', () => {
  const build = { version: manifest.version, commit: 'unknown', schema: MIGRATIONS.length };
  expect(readBuild(checkout)).toEqual(build);
  expect(buildText({ ...build, version: '0.2.0', commit: 'abc1234', schema: 1 })).toBe(
    'portcullis 0.2.0 (commit abc1234, schema 1)',
  );
});

describe('the commit of a checkout', () => {
  let short: string;

  beforeEach(() => {
    git(checkout, 'init', '--quiet', '--initial-branch=main');
    git(checkout, 'commit', '--quiet', '--allow-empty', '--message=One');
    short = git(checkout, 'rev-parse', 'HEAD').slice(0, 7);
  });

  it('is that of its branch, also of one with a slash, and after git has packed it', () => {
    const ofBranch = commitOf(checkout);
    git(checkout, 'switch', '--quiet', '--create', 'release/0.2+fix');
    const ofOther = commitOf(checkout);
    git(checkout, 'pack-refs', '--all');
    expect([ofBranch, ofOther, commitOf(checkout)]).toEqual([short, short, short]);
  });

  it('is the one that was checked out without a branch', () => {
    git(checkout, 'commit', '--quiet', '--allow-empty', '--message=Two');
    git(checkout, 'checkout', '--quiet', 'HEAD~1');
    expect(commitOf(checkout)).toBe(short);
  });

  it('is that of a worktree, not of the main one', () => {
    const worktree = path.join(folder, 'worktree');
    git(checkout, 'worktree', 'add', '--quiet', '-b', 'next', worktree);
    git(worktree, 'commit', '--quiet', '--allow-empty', '--message=Two');
    git(worktree, 'pack-refs', '--all');
    const next = git(worktree, 'rev-parse', 'HEAD').slice(0, 7);
    expect([next === short, commitOf(worktree), commitOf(checkout)]).toEqual([false, next, short]);
  });

  it('stands before a file that an older image left behind', () => {
    writeFileSync(path.join(checkout, 'COMMIT'), `${'a'.repeat(40)}\n`);
    expect(commitOf(checkout)).toBe(short);
  });

  it('is unknown before the first commit, and where HEAD leads out of the folder or is damaged', () => {
    writeFileSync(path.join(folder, 'elsewhere'), `${'a'.repeat(40)}\n`);
    const heads = ['ref: refs/heads/none', 'ref: refs/../../../elsewhere', 'ref: ../../elsewhere', 'x'.repeat(40), ''];
    const found = heads.map((head) => {
      writeFileSync(path.join(checkout, '.git/HEAD'), `${head}\n`);
      return commitOf(checkout);
    });
    expect(found).toEqual(heads.map(() => 'unknown'));
  });
});

describe('the commit of an image', () => {
  it('is in the file COMMIT', () => {
    writeFileSync(path.join(checkout, 'COMMIT'), `${'0123456'.padEnd(40, 'f')}\n`);
    expect(commitOf(checkout)).toBe('0123456');
  });

  it('is unknown where the build was not given one', () => {
    writeFileSync(path.join(checkout, 'COMMIT'), 'unknown\n');
    expect(commitOf(checkout)).toBe('unknown');
  });
});
