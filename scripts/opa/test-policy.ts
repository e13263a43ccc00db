import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { checkArguments, checkFormat } from './build-bundle.ts';
import type { Opa } from './find-opa.ts';

const MIN_COVERAGE = '100';

const FIELD = /\b(?:input|candidate|subject)\.[a-z_]+/g;

/** Format, types, Rego tests with coverage, planted typos. Throws an error with what `opa` said. */
export function testPolicy(opa: Opa): void {
  checkFormat(opa);
  opa.run(...checkArguments('policy'));
  const files = ['--ignore', 'bundle', '--ignore', 'capabilities.json', 'policy'];
  process.stdout.write(opa.run('test', '--verbose', '--fail-on-empty', ...files));
  opa.run('test', '--coverage', '--threshold', MIN_COVERAGE, '--format', 'json', ...files);
  console.log(`coverage: at least ${MIN_COVERAGE} %`);
  const sources = policySources();
  for (const [file, source] of sources) requireKindMembers(file, source);
  const reads = sources.flatMap(([file, source]) =>
    [...new Set(source.match(FIELD))].map((field) => ({ file, field })),
  );
  for (const read of reads) requireCaught(opa, read);
  console.log(`planted typos: ${reads.length} of ${reads.length} are compile errors`);
}

/** Rego files with their code, tests left out. */
function policySources(): [file: string, source: string][] {
  const files = readdirSync(path.join(POLICY_DIRECTORY, 'gateway'), { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => file.endsWith('.rego') && !file.endsWith('_test.rego'))
    .map((file) => [
      file,
      readFileSync(path.join(POLICY_DIRECTORY, 'gateway', file), 'utf8').replaceAll(/^#.*$/gm, ''),
    ]);
}

/** What the policy takes of every package of a rule kind: one that lacks it would be passed over. */
function requireKindMembers(file: string, source: string): void {
  if (!file.startsWith('iam')) return;
  for (const member of ['violations :=', 'allowing contains']) {
    if (!source.includes(`\n${member} `)) throw new Error(`policy/gateway/${file} does not define ${member}`);
  }
}

/** Misspells a field of the input: the schemas must make that a compile error. */
function requireCaught(opa: Opa, { file, field }: { readonly file: string; readonly field: string }): void {
  const directory = mkdtempSync(path.join(tmpdir(), 'policy-'));
  try {
    cpSync(path.join(POLICY_DIRECTORY, 'gateway'), path.join(directory, 'gateway'), { recursive: true });
    const misspelt = path.join(directory, 'gateway', file);
    const source = readFileSync(misspelt, 'utf8');
    writeFileSync(misspelt, source.replace(new RegExp(`\\b${field}\\b`), `${field}x`));
    if (compiles(opa, directory)) throw new Error(`policy/gateway/${file} compiles with ${field}x for ${field}.`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function compiles(opa: Opa, directory: string): boolean {
  try {
    opa.run(...checkArguments(directory));
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes('rego_type_error: undefined ref')) return false;
    throw error;
  }
}
