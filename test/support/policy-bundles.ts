/** Policy bundles as `opa build -b -t wasm` and `opa sign` make them, and such as must be refused. */
import { generateKeyPairSync, hash, type KeyObject, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { readBundle } from '../../src/policy/bundle.ts';
import type { PolicyInForce } from '../../src/policy/pdp.ts';
import { tarGz } from '../../src/workbench/export/export-archive.ts';

type Files = Readonly<Record<string, string | Uint8Array>>;

const bundle = readBundle();

/** The policy of this installation, as it is in force after a start without settings. */
export const policyInForce: PolicyInForce = {
  bundle,
  status: {
    digest: bundle.digest,
    revision: undefined,
    source: undefined,
    activatedAt: Date.UTC(2026, 10, 24),
    checkedAt: undefined,
    refusal: undefined,
  },
};

/** A compiled policy of test/fixtures/policy. */
export const compiled = (name: string): Buffer =>
  gunzipSync(readFileSync(new URL(`../fixtures/policy/${name}.wasm.gz`, import.meta.url)));

/** The files of a bundle with the policy of this installation, and others. */
export const bundleFiles = (revision: string, more: Files = {}): Files => ({
  '.manifest': JSON.stringify({ rego_version: 1, revision, roots: ['gateway'] }),
  'data.json': '{}',
  'policy.wasm': bundle.wasm,
  ...more,
});

/** Names begin with a slash, as OPA writes them. */
export const archiveOf = (files: Files): Buffer =>
  tarGz(new Map(Object.entries(files).map(([name, content]) => [`/${name}`, content])));

export interface SigningKey {
  readonly privateKey: KeyObject;
  /** PEM. */
  readonly publicKey: string;
}

export function signingKey(): SigningKey {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { privateKey, publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** The claims of a signature over these files. Documents are written as OPA hashes them, without blanks and sorted. */
export const claimsOf = (files: Files) => ({
  files: Object.entries(files).map(([name, content]) => ({
    name,
    hash: hash('sha256', content),
    algorithm: 'SHA-256',
  })),
});

/** The files with a signature next to them, made without the code that verifies it. */
export function signed(files: Files, { privateKey }: SigningKey, claims: object = claimsOf(files)): Files {
  const content = `${base64({ alg: 'ES256' })}.${base64(claims)}`;
  const signature = sign('sha256', Buffer.from(content), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const token = `${content}.${signature.toString('base64url')}`;
  return { ...files, '.signatures.json': JSON.stringify({ signatures: [token] }) };
}

/** The claims of a signature with a number, by which bundles of one signer stand in order. */
export const numbered = (files: Files, number: unknown): object => ({ ...claimsOf(files), number });

/** Instructions of WebAssembly. */
export const TRAP = [0x00];
export const NEVER_RETURN = [0x03, 0x40, 0x0c, 0x00, 0x0b];

/** A module that does these instructions as soon as it is instantiated. */
export function moduleThat(instructions: readonly number[]): Buffer {
  const body = [0x00, ...instructions, 0x0b];
  const section = (id: number, ...content: number[]): number[] => [id, content.length, ...content];
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, 1, 0x60, 0, 0),
    ...section(3, 1, 0),
    ...section(8, 0),
    ...section(10, 1, body.length, ...body),
  ]);
}
