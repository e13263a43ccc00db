import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Mapping } from '../../domain/model.ts';
import type { PolicyDecision, PolicyInput, WorldDocument } from '../../generated/types.ts';
import { policySources } from '../../policy/bundle.ts';
import { compileSubjectRules, dataDocument, PolicyFailure } from '../../policy/data-document.ts';
import { inputDocument } from '../../policy/input-document.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { describeRequest } from '../fixtures/fixture-expectations.ts';
import type { LoadedFixture } from '../fixtures/fixture-file.ts';
import type { Given } from '../fixtures/fixture-given.ts';
import { calledCandidates, type FixtureRequest, subjectsOf } from '../fixtures/fixture-requests.ts';
import type { World } from '../world/world.ts';

interface ExportContents extends ExportedCases {
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

/** Rules of a subject as they stand in a data document. */
interface ExportSubject {
  readonly id: string;
  /** JSON text. */
  readonly rules: string;
}

/** A call, and what the compiled policy decides about it. */
interface ExportCase {
  /** The fixture and the request, for people. */
  readonly name: string;
  readonly input: PolicyInput;
  readonly decision: PolicyDecision;
}

export interface ExportedCases {
  readonly subjects: readonly ExportSubject[];
  readonly cases: readonly ExportCase[];
}

/** The policy's result for a call that it cannot judge, before the gateway makes a failure of it. */
const UNJUDGED: PolicyDecision = { permitted: [], violations: [] };

/**
 * The requests of fixtures that ask the policy anything, with the rules of everyone in them. Subjects carry the name of their
 * fixture, so that all fixtures fit into one data document. Fixtures that are skipped are left out, and so are lists: nobody
 * decides about one.
 */
export function exportCases(pdp: Pdp, fixtures: readonly LoadedFixture[]): ExportedCases {
  const exported = fixtures.filter(({ skip }) => skip === undefined).map((fixture) => exportFixture(pdp, fixture));
  return { subjects: exported.flatMap(({ subjects }) => subjects), cases: exported.flatMap(({ cases }) => cases) };
}

function exportFixture(pdp: Pdp, { name, given, axes, cases }: LoadedFixture): ExportedCases {
  const subjects = new Map<string, ExportSubject>();
  for (const { available, id, rules } of [...given.keys.keys()].flatMap((key) => subjectsOf(given, key))) {
    if (!available) continue;
    subjects.set(id, { id: `${name} / ${id}`, rules: compileSubjectRules(rules.map(({ rule }) => rule)) });
  }
  const caseOf = (request: FixtureRequest, action: PolicyInput['action']): ExportCase => {
    const called = subjectsOf(given, request.labels.key).map(({ scope, id }) => ({ scope, id: `${name} / ${id}` }));
    const input = inputDocument(action, request.clientIp, called, judgedCandidates(pdp, given, request));
    const known = new Set(called.map(({ id }) => id));
    return {
      name: `${name}: ${describeRequest(request, axes)}`,
      input,
      decision: decided(
        pdp,
        input,
        [...subjects.values()].filter(({ id }) => known.has(id)),
      ),
    };
  };
  const asked = cases.flatMap(({ request }) => {
    const { action, candidates } = request;
    return action === 'list' || candidates.length === 0 ? [] : [caseOf(request, action)];
  });
  return { subjects: [...subjects.values()], cases: asked };
}

/** A policy that cannot judge cannot choose for `auto` either. */
function judgedCandidates(pdp: Pdp, given: Given, request: FixtureRequest): readonly Mapping[] {
  try {
    return calledCandidates(pdp, given, request);
  } catch (failure) {
    if (failure instanceof PolicyFailure) return request.candidates;
    throw failure;
  }
}

function decided(pdp: Pdp, input: PolicyInput, subjects: readonly ExportSubject[]): PolicyDecision {
  try {
    return pdp.decide(input, dataDocument(subjects));
  } catch (failure) {
    if (failure instanceof PolicyFailure) return UNJUDGED;
    throw failure;
  }
}

/** The rules of everyone in a world. */
export const exportSubjects = ({ organizations, groups, members, keys }: World): ExportSubject[] =>
  [...organizations.values(), ...groups.values(), ...members.values(), ...keys.values()].map(({ id, rules }) => ({
    id,
    rules: compileSubjectRules(rules),
  }));
