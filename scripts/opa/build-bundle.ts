import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { type BundleManifest, POLICY_DIRECTORY, sourceDigest } from '../../src/policy/bundle.ts';
import { ENTRYPOINTS } from '../../src/policy/engine.ts';
import type { Opa } from './find-opa.ts';

/** The files of `policy/bundle`, by name. */
export type BundleFiles = Readonly<Record<'policy.wasm' | 'manifest.json', Buffer>>;

/** Arguments of `opa check` for a policy folder: strict, typed by the schemas, with the builtins of policy/capabilities.json. */
export const checkArguments = (directory: string): string[] => [
  ...['check', '--strict', '--schema', 'schemas/policy', '--capabilities', 'policy/capabilities.json'],
  directory,
];

/** Formats nothing, checks everything, compiles. Equal sources give equal bytes. */
export function buildBundle(opa: Opa): BundleFiles {
  checkFormat(opa);
  opa.run(...checkArguments('policy'));
  const wasm = compilePolicy(opa, 'policy');
  const manifest: BundleManifest = {
    opaVersion: opa.version,
    entrypoints: ENTRYPOINTS,
    sourceSha256: sourceDigest(POLICY_DIRECTORY),
    wasmSha256: hash('sha256', wasm),
  };
  return { 'policy.wasm': wasm, 'manifest.json': Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`) };
}

/** `opa fmt --fail` succeeds silently only when nothing would change. */
export function checkFormat(opa: Opa): void {
  opa.run('fmt', '--fail', '--list', 'policy');
}

export function writeBundle(files: BundleFiles): void {
  const directory = path.join(POLICY_DIRECTORY, 'bundle');
  mkdirSync(directory, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(path.join(directory, name), content);
}

/**
 * A policy folder as WASM. `-O 0`: higher levels make the module slower, and without stated roots they fold rules away that
 * read data. Tests and the bundle itself are left out, because every rule that refers to an entrypoint would become one.
 */
export function compilePolicy(opa: Opa, folder: string): Buffer {
  const directory = mkdtempSync(path.join(tmpdir(), 'policy-'));
  try {
    const archive = path.join(directory, 'bundle.tar.gz');
    const ignored = ['--ignore', '*_test.rego', '--ignore', 'bundle'];
    const builtins = ['--capabilities', 'policy/capabilities.json'];
    opa.run('build', '-t', 'wasm', '-b', folder, '-O', '0', ...ignored, ...builtins, '-o', archive);
    return fileInTar(gunzipSync(readFileSync(archive)), '/policy.wasm');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** A tar archive is a row of 512-byte blocks: for each file a header with its name and octal size, then its content. */
function fileInTar(archive: Buffer, name: string): Buffer {
  for (let offset = 0; archive[offset] !== 0 && offset < archive.length; ) {
    const size = Number.parseInt(archive.toString('latin1', offset + 124, offset + 136), 8);
    const content = offset + 512;
    if (archive.toString('latin1', offset, offset + 100).replace(/\0.*$/s, '') === name) {
      return archive.subarray(content, content + size);
    }
    offset = content + Math.ceil(size / 512) * 512;
  }
  throw new Error(`opa build made no ${name}.`);
}
