import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readArchive } from '../../policy/archive/read-archive.ts';
import { SIGNATURES } from '../../policy/archive/signature.ts';
import { POLICY_DIRECTORY } from '../../policy/bundle.ts';
import { tarGz } from '../export/export-archive.ts';
import { isFixture } from './bundle-fixtures.ts';

export interface BuildOptions {
  /** What the bundle is called. */
  readonly revision: string;
  /** Path of a private key in PEM form; absent: the bundle is not signed. */
  readonly signingKey?: string;
  /** `RS256` if absent. */
  readonly signingAlg?: string;
}

/** What a team's folder may define: OPA refuses a bundle that leaves its roots, and roots that overlap. */
const OWN_MANIFEST = JSON.stringify({ roots: ['custom', 'custom_data'], rego_version: 1 });

/**
 * A bundle of the gateway's Rego, the Rego (package `custom`) and data (below `custom_data`) of a folder, and its fixtures.
 * Compiled by `opa`, which must be on the PATH. @throws Error with what `opa` said
 */
export function buildBundle(folder: string, { revision, signingKey, signingAlg = 'RS256' }: BuildOptions): Buffer {
  const work = mkdtempSync(path.join(tmpdir(), 'portcullis-build-'));
  try {
    const [gateway, own, archive] = ['policy', 'own', 'bundle.tar.gz'].map((name) => path.join(work, name));
    if (gateway === undefined || own === undefined || archive === undefined) throw new Error('no folder to work in');
    cpSync(POLICY_DIRECTORY, gateway, { recursive: true, filter: isSource });
    cpSync(folder, own, { recursive: true, filter: isSource });
    writeFileSync(path.join(own, '.manifest'), OWN_MANIFEST);
    const capabilities = ['--capabilities', path.join(POLICY_DIRECTORY, 'capabilities.json')];
    opa(work, 'check', '--strict', ...capabilities, '--bundle', 'policy', 'own');
    const wanted = ['-t', 'wasm', '-O', '0', '--ignore', '*_test.rego', '--revision', revision, '-o', archive];
    opa(work, 'build', ...wanted, ...capabilities, '-b', 'policy', 'own');
    const files = new Map<string, Uint8Array>(readArchive(readFileSync(archive)));
    for (const name of filesBelow(folder)) if (isFixture(name)) files.set(name, readFileSync(path.join(folder, name)));
    if (signingKey !== undefined) {
      writeFileSync(archive, tarGz(files));
      const key = ['--signing-key', path.resolve(signingKey), '--signing-alg', signingAlg];
      opa(work, 'sign', ...key, '-o', work, '-b', archive);
      files.set(SIGNATURES, readFileSync(path.join(work, SIGNATURES)));
    }
    return tarGz(files);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Not what was compiled before, nor a signature of it. */
const isSource = (file: string): boolean =>
  !path.relative(POLICY_DIRECTORY, file).startsWith('bundle') && path.basename(file) !== SIGNATURES;

const filesBelow = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'))
    .sort();

function opa(cwd: string, ...args: string[]): void {
  const { status, stdout, stderr, error } = spawnSync('opa', args, { cwd, encoding: 'utf8' });
  if (error !== undefined) {
    throw new Error('`opa` is needed to compile Rego, and is not on the PATH: install OPA 1.22 or newer.', {
      cause: error,
    });
  }
  if (status !== 0) throw new Error(`opa ${args[0]} refuses it:\n${`${stderr}${stdout}`.trim()}`);
}
