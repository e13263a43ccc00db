/**
 * Proves that stock OPA decides as the compiled policy does: exports all fixtures by `portcullis policy export`, and as many
 * random rule sets, lets the real `opa` decide each exported input by the exported bundle, and compares. The same for random
 * rule sets next to a package `custom`, test/fixtures/policy/denials.
 * `node scripts/run.js scripts/opa/compare-export.ts [--runs 2000] [--seed 1]`
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import type { PolicyDecision, PolicyInput } from '../../src/generated/types.ts';
import { validator } from '../../src/lib/schemas.ts';
import { bundleDigest, POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { compileSubjectRules, type DataDocument, PolicyFailure } from '../../src/policy/data-document.ts';
import { createPdp, type Pdp } from '../../src/policy/pdp.ts';
import { writeExport } from '../../src/workbench/export/export-archive.ts';
import { type ExportedCases, exportFiles } from '../../src/workbench/export/export-bundle.ts';
import { policyCase } from '../../test/policy/arbitraries.ts';
import { dataOf, inputOf } from '../../test/policy/production.ts';
import { compilePolicy } from './build-bundle.ts';
import { canonicalText } from './canonical-decision.ts';
import { findOpa, MISSING_OPA, type Opa } from './find-opa.ts';
import { CASES } from './load-fixtures.ts';
import { writePolicyWithCustom } from './policy-with-custom.ts';

const validatePolicyDecision = validator('PolicyDecision');

const LAUNCHER = fileURLToPath(new URL('../portcullis.js', import.meta.url));
/** One answer for each case: within a comprehension `opa eval` 1.22 does not see the replaced input. */
const EVERY_DECISION = 'some id, each in data.cases; decision := data.gateway.authz.decision with input as each.input';

interface Answer {
  readonly expressions: readonly { readonly value: unknown }[];
  readonly bindings?: { readonly id?: string; readonly decision?: unknown };
}

/** The answers of a query on an exported bundle. */
function evaluate(opa: Opa, bundle: string, query: string, ...more: string[]): readonly Answer[] {
  const { result = [] }: { result?: readonly Answer[] } = JSON.parse(
    opa.run('eval', '-b', bundle, ...more, query).toString(),
  );
  return result;
}

interface Recorded {
  readonly name: string;
  readonly decision: PolicyDecision;
}

/** The cases in an export with the decisions of the compiled policy, by id. */
function recorded(folder: string): Map<string, Recorded> {
  const content: unknown = JSON.parse(readFileSync(path.join(folder, 'cases/data.json'), 'utf8'));
  return new Map(Object.entries(content ?? {}).map(([id, each]) => [id, checked(id, each)]));
}

function checked(id: string, each: unknown): Recorded {
  if (typeof each !== 'object' || each === null || !('name' in each) || !('decision' in each)) {
    throw new Error(`The exported case ${id} is not complete.`);
  }
  const { decision, name } = each;
  if (typeof name !== 'string' || !validatePolicyDecision(decision))
    throw new Error(`The case ${id} holds no decision.`);
  return { name, decision };
}

/** Compares all at once, some one by one as `opa eval -i` takes them, and what `opa test` makes of it. */
function compare(opa: Opa, folder: string, bundle: string): number {
  const cases = recorded(folder);
  const answers = evaluate(opa, bundle, EVERY_DECISION);
  const decisions = new Map(answers.map(({ bindings }) => [bindings?.id, bindings?.decision]));
  const single = [...cases.keys()].filter((_id, index, all) => index % Math.ceil(all.length / 5) === 0);
  for (const id of single) {
    const input = path.join(folder, 'inputs', `${id}.json`);
    const [answer] = evaluate(opa, bundle, 'data.gateway.authz.decision', '-i', input);
    requireEqual(id, cases.get(id), answer?.expressions[0]?.value);
  }
  for (const [id, each] of cases) requireEqual(id, each, decisions.get(id));
  if (cases.size === 0 || decisions.size !== cases.size) throw new Error('Not every case was decided.');
  opa.run('test', '--fail-on-empty', '--timeout', '5m', '-b', bundle);
  return cases.size;
}

function requireEqual(id: string, recorded: Recorded | undefined, decision: unknown): void {
  const [expected, found] = [canonicalText(recorded?.decision), canonicalText(decision)];
  if (expected === found) return;
  throw new Error(`OPA decides case ${id} (${recorded?.name}) otherwise.\n  compiled ${expected}\n  OPA      ${found}`);
}

/** Random calls and rules; subjects carry the number of their case, so that all fit into one data document. */
function randomCases(pdp: Pdp, seed: number, runs: number): ExportedCases {
  const exported = fc.sample(policyCase, { seed, numRuns: runs }).map((request, index) => {
    const subjects = request.subjects.map((subject) => ({ ...subject, id: `${index} ${subject.id}` }));
    const input = inputOf({ ...request, subjects });
    return {
      subjects: subjects.map(({ id, rules }) => ({ id, rules: compileSubjectRules(rules) })),
      cases: [
        { name: `random case ${index} of seed ${seed}`, input, decision: decisionOf(pdp, input, dataOf(subjects)) },
      ],
    };
  });
  return { subjects: exported.flatMap(({ subjects }) => subjects), cases: exported.flatMap(({ cases }) => cases) };
}

/** As OPA sees it: a call that the policy cannot judge has an empty decision, of which the gateway makes a failure. */
function decisionOf(pdp: Pdp, input: PolicyInput, data: DataDocument): PolicyDecision {
  try {
    return pdp.decide(input, data);
  } catch (failure) {
    if (failure instanceof PolicyFailure) return { permitted: [], violations: [] };
    throw failure;
  }
}

function main(opa: Opa, seed: number, runs: number, work: string): void {
  const inWork = (name: string): string => path.join(work, name);
  const [folder, archive] = [inWork('fixtures'), inWork('fixtures.tar.gz')];
  for (const output of [folder, archive]) {
    execFileSync(process.execPath, [LAUNCHER, 'policy', 'export', CASES, '-o', output], { env: { DATA_DIR: work } });
  }
  const fixtures = compare(opa, folder, folder);
  compare(opa, folder, archive);
  console.log(
    `opa ${opa.version} decides ${fixtures} requests of the fixtures as the compiled policy, from a folder and an archive`,
  );
  const compareRandom = (name: string, policyDirectory: string, pdp: Pdp): number => {
    const { bundleDigest } = pdp;
    const exported = inWork(name);
    writeExport(exported, exportFiles({ policyDirectory, bundleDigest, ...randomCases(pdp, seed, runs) }));
    return compare(opa, exported, exported);
  };
  const random = compareRandom('random', POLICY_DIRECTORY, createPdp());
  console.log(`and ${random} random calls under random rules (seed ${seed})`);
  const extended = inWork('policy');
  writePolicyWithCustom(extended);
  const wasm = compilePolicy(opa, extended);
  const custom = compareRandom('custom', extended, createPdp({ wasm, digest: bundleDigest({ wasm }) }));
  console.log(`and as many, ${custom}, next to a package custom`);
}

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '2000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const opa = findOpa();
const work = mkdtempSync(path.join(tmpdir(), 'export-'));
try {
  if (opa === null) throw new Error(MISSING_OPA);
  main(opa, Number(values.seed), Number(values.runs), work);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true });
}
