import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { checkArguments, checkFormat } from './build-bundle.ts';
import type { Opa } from './find-opa.ts';

const MIN_COVERAGE = '100';

/** One misspelt field in each package that reads input: the schemas must make every one of them a compile error. */
const TYPOS: readonly [file: string, right: string, wrong: string][] = [
  ['gateway/authz/authz.rego', 'candidate.free', 'candidate.fee'],
  ['gateway/iam/ip/ip.rego', 'input.client_ip', 'input.client_pi'],
  ['gateway/iam/models/models.rego', 'candidate.names', 'candidate.name'],
  ['gateway/iam/pricing/pricing.rego', 'candidate.input_price', 'candidate.input_prize'],
  ['gateway/iam/pricing/pricing.rego', 'candidate.output_price', 'candidate.price_output'],
  ['gateway/iam/providers/providers.rego', 'candidate.provider_names', 'candidate.providers'],
  ['gateway/lib/scopes/scopes.rego', 'subject.scope', 'subject.scopes'],
];

/** Format, types, Rego tests with coverage, planted typos. Throws an error with what `opa` said. */
export function testPolicy(opa: Opa): void {
  checkFormat(opa);
  opa.run(...checkArguments('policy'));
  const files = ['--ignore', 'bundle', '--ignore', 'capabilities.json', 'policy'];
  process.stdout.write(opa.run('test', '--verbose', '--fail-on-empty', ...files));
  opa.run('test', '--coverage', '--threshold', MIN_COVERAGE, '--format', 'json', ...files);
  console.log(`coverage: at least ${MIN_COVERAGE} %`);
  for (const typo of TYPOS) requireCaught(opa, typo);
  console.log(`planted typos: ${TYPOS.length} of ${TYPOS.length} are compile errors`);
}

function requireCaught(opa: Opa, [file, right, wrong]: (typeof TYPOS)[number]): void {
  const directory = mkdtempSync(path.join(tmpdir(), 'policy-'));
  try {
    cpSync(path.join(POLICY_DIRECTORY, 'gateway'), path.join(directory, 'gateway'), { recursive: true });
    const source = readFileSync(path.join(directory, file), 'utf8');
    if (!source.includes(right)) throw new Error(`${file} no longer reads ${right}: state another typo.`);
    writeFileSync(path.join(directory, file), source.replace(right, wrong));
    if (compiles(opa, directory)) throw new Error(`${file} compiles with ${wrong} for ${right}.`);
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
