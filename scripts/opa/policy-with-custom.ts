import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';

const DENIALS = fileURLToPath(new URL('../../test/fixtures/policy/denials', import.meta.url));

/** Writes the policy's sources and test/fixtures/policy/denials, a package `custom`, into one folder. */
export function writePolicyWithCustom(folder: string): void {
  for (const source of [POLICY_DIRECTORY, DENIALS]) cpSync(source, folder, { recursive: true });
  writeFileSync(path.join(folder, '.manifest'), JSON.stringify({ roots: ['gateway', 'custom'], rego_version: 1 }));
}
