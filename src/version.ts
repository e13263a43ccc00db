import { readFileSync } from 'node:fs';
import path from 'node:path';
import manifest from '../package.json' with { type: 'json' };
import { MIGRATIONS } from './store/migrations/migrate.ts';

/** The running build: `0.2.0`, the commit's first seven digits or `unknown`, and the number of the newest migration. */
export interface Build {
  readonly version: string;
  readonly commit: string;
  readonly schema: number;
}

const ROOT = path.dirname(import.meta.dirname);
const UNKNOWN = 'unknown';

/** The first line of a small file; undefined: it cannot be read. */
function lineOf(...parts: string[]): string | undefined {
  try {
    return readFileSync(path.resolve(...parts), 'utf8')
      .split('\n', 1)[0]
      ?.trim();
  } catch {
    return undefined;
  }
}

/** The folder of git; in a worktree and a submodule `.git` is a file that names it. */
function gitFolder(root: string): string {
  const [, elsewhere] = /^gitdir: (.+)$/.exec(lineOf(root, '.git') ?? '') ?? [];
  return path.resolve(root, elsewhere ?? '.git');
}

/** Returns a branch's commit. The branch's file is absent once git has packed it into a list. */
function commitOf(ref: string, folder: string): string | undefined {
  if (!ref.startsWith('refs/') || ref.split('/').includes('..')) return undefined;
  const shared = path.resolve(folder, lineOf(folder, 'commondir') ?? '.');
  const loose = lineOf(folder, ref) ?? lineOf(shared, ref);
  if (loose !== undefined) return loose;
  try {
    const packed = readFileSync(path.join(shared, 'packed-refs'), 'utf8').split('\n');
    return packed.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0];
  } catch {
    return undefined;
  }
}

/** The commit of a checkout, read without git; without one that of the file `COMMIT`, which the build of the image writes. */
function readCommit(root: string): string {
  const folder = gitFolder(root);
  const head = lineOf(folder, 'HEAD');
  const [, ref] = /^ref: (.+)$/.exec(head ?? '') ?? [];
  const commit = head === undefined ? lineOf(root, 'COMMIT') : ref === undefined ? head : commitOf(ref, folder);
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(commit ?? '') ? (commit ?? '').slice(0, 7) : UNKNOWN;
}

/** @param root the folder of an installation */
export const readBuild = (root = ROOT): Build => ({
  version: manifest.version,
  commit: readCommit(root),
  schema: MIGRATIONS.length,
});

/** Text printed by `--version`. */
export const buildText = ({ version, commit, schema }: Build): string =>
  `portcullis ${version} (commit ${commit}, schema ${schema})`;
