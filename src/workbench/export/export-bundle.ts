import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { WorldDocument } from '../../generated/types.ts';
import { policySources } from '../../policy/bundle.ts';
import { dataDocument } from '../../policy/data-document.ts';
import type { ExportedCases } from './export-cases.ts';

export interface ExportContents extends ExportedCases {
  /** The `policy` folder whose Rego is exported. */
  readonly policyDirectory: string;
  /** SHA-256 of the compiled policy whose sources these are. */
  readonly bundleDigest: string;
  /** The rules as people write them, for `policy diff` and `policy test --rules`. */
  readonly world?: WorldDocument;
}

/** Every file of an export by its path, in order. */
export type ExportFiles = ReadonlyMap<string, string>;

/**
 * The policy for stock OPA: a bundle of the Rego and the whole data document, without WASM, which stock OPA cannot evaluate.
 * `inputs` and `world.json` stand next to what OPA reads of a bundle; `opa test -b` runs the cases.
 */
export function exportFiles({ policyDirectory, bundleDigest, subjects, cases, world }: ExportContents): ExportFiles {
  const rego = policySources(policyDirectory).filter((file) => file.endsWith('.rego'));
  const numbered = cases.map((each, index) => [String(index + 1).padStart(4, '0'), each] as const);
  return new Map([
    ['.manifest', json(manifest(policyDirectory, bundleDigest))],
    ['data.json', dataDocument(subjects).text],
    ...rego.map((file) => [file, readFileSync(path.join(policyDirectory, file), 'utf8')] as const),
    ['cases/data.json', json(Object.fromEntries(numbered))],
    ['cases_test/cases_test.rego', CASES_TEST],
    ...numbered.map(([id, { input }]) => [`inputs/${id}.json`, json(input)] as const),
    ...(world === undefined ? [] : [['world.json', json(world)] as const]),
  ]);
}

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`;

/** The policy's own manifest, with the roots of what is exported next to it. */
function manifest(policyDirectory: string, bundleDigest: string): object {
  const own: unknown = JSON.parse(readFileSync(path.join(policyDirectory, '.manifest'), 'utf8'));
  if (typeof own !== 'object' || own === null || !('roots' in own) || !Array.isArray(own.roots)) {
    throw new Error(`The manifest in ${policyDirectory} states no roots.`);
  }
  return { ...own, revision: bundleDigest, roots: [...own.roots, 'subjects', 'cases', 'cases_test'] };
}

/** Lists of a decision are sets, so they are compared as sets. */
const CASES_TEST = `# METADATA
# title: Exported cases
# description: Stock OPA decides each exported call as the compiled policy did.
package cases_test

test_decision[name] if {
	some id, case in data.cases
	name := concat(" ", [id, case.name])
	decision := data.gateway.authz.decision with input as case.input
	_as_sets(decision) == _as_sets(case.decision)
}

_as_sets(decision) := {
	"permitted": {candidate | some candidate in decision.permitted},
	"violations": {violation | some violation in decision.violations},
	"shadow": {field: {entry | some entry in entries} | some field, entries in object.get(decision, "shadow", {})},
}
`;
