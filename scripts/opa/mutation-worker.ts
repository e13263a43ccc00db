import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { compilePolicy } from './build-bundle.ts';
import { findOpa, MISSING_OPA, type Opa } from './find-opa.ts';
import { type Catch, createCustomJudge, createJudge } from './judge-policy.ts';
import type { Mutant } from './mutants.ts';
import { writePolicyWithCustom } from './policy-with-custom.ts';

export interface MutationTask {
  readonly mutants: readonly Mutant[];
  readonly seed: number;
  /** Random cases for each mutant. */
  readonly runs: number;
}

/** The outcome of one mutant: `stillborn` does not compile, `survived` was caught by nothing. */
export type MutationResult = { readonly mutant: Mutant; readonly fate: 'stillborn' | 'survived' | Catch };

/**
 * Compiles and judges every mutant of its task, and posts a `MutationResult` for each. One that is caught by nothing is compiled
 * once more with a package `custom` next to it, without which it is not seen what the policy makes of one.
 */
function main({ mutants, seed, runs }: MutationTask): void {
  const opa = findOpa();
  if (opa === null) throw new Error(MISSING_OPA);
  const judge = createJudge(seed, runs);
  const judgeCustom = createCustomJudge(seed);
  const folder = mkdtempSync(path.join(tmpdir(), 'mutants-'));
  const [plain, extended] = [path.join(folder, 'plain'), path.join(folder, 'extended')];
  cpSync(POLICY_DIRECTORY, plain, { recursive: true });
  writePolicyWithCustom(extended);
  const judgeExtended = (mutant: Mutant): Catch | null => {
    const wasm = compiledMutant(opa, extended, mutant);
    return wasm === null ? { by: 'custom policy', at: 'compiling' } : judgeCustom(wasm);
  };
  try {
    for (const mutant of mutants) {
      const wasm = compiledMutant(opa, plain, mutant);
      const fate = wasm === null ? 'stillborn' : (judge(wasm) ?? judgeExtended(mutant) ?? 'survived');
      parentPort?.postMessage({ mutant, fate } satisfies MutationResult);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The mutant of the policy in a folder, which is left as it was; null: it does not compile. */
function compiledMutant(opa: Opa, folder: string, mutant: Mutant): Buffer | null {
  const file = path.join(folder, mutant.file);
  const original = readFileSync(file);
  writeFileSync(file, mutant.source);
  try {
    return compilePolicy(opa, folder);
  } catch (error) {
    if (error instanceof Error && /^opa build failed/.test(error.message)) return null;
    throw error;
  } finally {
    writeFileSync(file, original);
  }
}

main(workerData);
