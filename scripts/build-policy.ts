/**
 * Compiles `policy/` into `policy/bundle/`: `npm run policy:build`.
 * `--check` compiles again and compares byte for byte; without a compiler it compares the recorded digests only.
 * `--test` runs the Rego tests.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { POLICY_DIRECTORY, readBundle } from '../src/policy/bundle.ts';
import { type BundleFiles, buildBundle, writeBundle } from './opa/build-bundle.ts';
import { findOpa, MISSING_OPA } from './opa/find-opa.ts';
import { testPolicy } from './opa/test-policy.ts';

function main(mode: string | undefined): void {
  const opa = findOpa();
  if (mode === '--check') readBundle();
  if (opa === null) {
    if (mode === '--check') console.log('policy/bundle has the recorded digests of its sources and of its module.');
    else process.exitCode = 1;
    console.error(MISSING_OPA);
    return;
  }
  if (mode === '--test') testPolicy(opa);
  else if (mode === '--check') compare(buildBundle(opa));
  else writeBundle(buildBundle(opa));
}

function compare(built: BundleFiles): void {
  for (const [name, content] of Object.entries(built)) {
    const committed = readFileSync(path.join(POLICY_DIRECTORY, 'bundle', name));
    if (!committed.equals(content)) throw new Error(`policy/bundle/${name} is not what compiling the sources gives.`);
  }
  console.log('policy/bundle is exactly what compiling the sources gives.');
}

try {
  main(process.argv[2]);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof Error && error.cause instanceof Error) console.error(error.cause.message);
  process.exitCode = 1;
}
