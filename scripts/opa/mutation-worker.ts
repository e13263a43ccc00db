import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { POLICY_DIRECTORY } from '../../src/policy/bundle.ts';
import { compilePolicy } from './build-bundle.ts';
import { findOpa, MISSING_OPA } from './find-opa.ts';
import { type Catch, createJudge } from './judge-policy.ts';
import type { Mutant } from './mutants.ts';

export interface MutationTask {
  readonly mutants: readonly Mutant[];
  readonly seed: number;
  /** Random cases for each mutant. */
  readonly runs: number;
}

/** The outcome of one mutant: `stillborn` does not compile, `survived` was caught by nothing. */
export type MutationResult = { readonly mutant: Mutant; readonly fate: 'stillborn' | 'survived' | Catch };

/** Compiles and judges every mutant of its task, and posts a `MutationResult` for each. */
function main({ mutants, seed, runs }: MutationTask): void {
  const opa = findOpa();
  if (opa === null) throw new Error(MISSING_OPA);
  const judge = createJudge(seed, runs);
  const folder = mkdtempSync(path.join(tmpdir(), 'mutants-'));
  cpSync(POLICY_DIRECTORY, folder, { recursive: true });
  try {
    for (const mutant of mutants) {
      const file = path.join(folder, mutant.file);
      const original = readFileSync(file);
      writeFileSync(file, mutant.source);
      const wasm = compiled(() => compilePolicy(opa, folder));
      writeFileSync(file, original);
      const fate = wasm === null ? 'stillborn' : (judge(wasm) ?? 'survived');
      parentPort?.postMessage({ mutant, fate } satisfies MutationResult);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function compiled(compile: () => Buffer): Buffer | null {
  try {
    return compile();
  } catch (error) {
    if (error instanceof Error && /^opa build failed/.test(error.message)) return null;
    throw error;
  }
}

main(workerData);
