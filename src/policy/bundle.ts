import { createHash, hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { SignedAs } from '../generated/types.ts';
import { PolicyFailure } from './data-document.ts';

/** A compiled policy whose digests were verified. */
export interface PolicyBundle {
  readonly wasm: Uint8Array;
  /** Data of its own next to the rules, as JSON text of an object with members; undefined: none. */
  readonly data?: string | undefined;
  /** SHA-256 of the compiled policy, and of its data if it has any, hex: the bundle digest. */
  readonly digest: string;
  /** It has a package `custom`, which may look at the facts of the request. */
  readonly takesFacts?: boolean | undefined;
  /** Name that its makers gave it; undefined: none. */
  readonly revision?: string | undefined;
  /** Content of its signature; undefined: it has none, or nobody asked for it. */
  readonly signedAs?: SignedAs | undefined;
}

/** The bundle digest of a module and its data. */
export function bundleDigest({ wasm, data }: Pick<PolicyBundle, 'wasm' | 'data'>): string {
  const digest = hash('sha256', wasm);
  return data === undefined ? digest : hash('sha256', `${digest} ${data}`);
}

/** `policy/bundle/manifest.json`, as `npm run policy:build` writes it. */
export interface BundleManifest {
  readonly opaVersion: string;
  readonly entrypoints: readonly string[];
  /** SHA-256, hex, of the sources (`sourceDigest`) and of `policy.wasm`. */
  readonly sourceSha256: string;
  readonly wasmSha256: string;
}

/** The `policy` folder of this installation. */
export const POLICY_DIRECTORY = fileURLToPath(new URL('../../policy', import.meta.url));

/**
 * Reads the compiled policy in `<directory>/bundle` and verifies both recorded digests: of the module, and of the Rego
 * next to it, so that what was reviewed is what runs. @throws PolicyFailure.
 */
export function readBundle(directory: string = POLICY_DIRECTORY): PolicyBundle {
  try {
    const manifest = readManifest(directory);
    const wasm = readFileSync(path.join(directory, 'bundle/policy.wasm'));
    const digest = hash('sha256', wasm);
    if (digest !== manifest.wasmSha256) throw new Error('policy.wasm is not the module that the manifest records.');
    if (sourceDigest(directory) !== manifest.sourceSha256) {
      throw new Error(
        'The Rego sources are not those that the compiled policy was built from: run npm run policy:build.',
      );
    }
    return { wasm, digest };
  } catch (cause) {
    throw new PolicyFailure(`The policy bundle in ${directory} cannot be used.`, cause);
  }
}

function readManifest(directory: string): BundleManifest {
  const manifest: unknown = JSON.parse(readFileSync(path.join(directory, 'bundle/manifest.json'), 'utf8'));
  if (!isManifest(manifest)) throw new Error('The manifest lacks a field.');
  return manifest;
}

function isManifest(value: unknown): value is BundleManifest {
  if (typeof value !== 'object' || value === null) return false;
  const fields: Partial<Record<keyof BundleManifest, unknown>> = value;
  return (
    typeof fields.opaVersion === 'string' &&
    Array.isArray(fields.entrypoints) &&
    typeof fields.sourceSha256 === 'string' &&
    typeof fields.wasmSha256 === 'string'
  );
}

/**
 * Paths, relative to the policy folder and sorted, of everything that the compiled policy depends on: Rego without tests,
 * the manifest with the roots, and the builtins allowed.
 */
export function policySources(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => !file.startsWith('bundle/') && !file.endsWith('_test.rego'))
    .filter((file) => file.endsWith('.rego') || file === '.manifest' || file === 'capabilities.json')
    .sort();
}

/** SHA-256, hex, of the sources' paths and contents, each preceded by its length so that no two sets read alike. */
export function sourceDigest(directory: string): string {
  const digest = createHash('sha256');
  for (const file of policySources(directory)) {
    const content = readFileSync(path.join(directory, file));
    digest.update(`${Buffer.byteLength(file)} ${file} ${content.byteLength} `).update(content);
  }
  return digest.digest('hex');
}
