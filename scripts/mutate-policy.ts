/**
 * Breaks the Rego one line at a time, compiles each mutant with `opa`, and sees whether the policy's tests catch it:
 * `npm run policy:mutate`. Survivors must be those explained in policy/MUTANTS.md, and no others.
 * `--runs N`: random cases for each mutant; `--seed N`: other ones; `--verbose`: the outcome of each mutant; `--only TEXT`: the
 * mutants whose `file:line` has this in it, while working on them: the others' explanations then count as stale.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { POLICY_DIRECTORY, policySources } from '../src/policy/bundle.ts';
import { compareWithExplained } from './opa/explained-survivors.ts';
import { findOpa, MISSING_OPA } from './opa/find-opa.ts';
import { type Mutant, mutantsOf } from './opa/mutants.ts';
import type { MutationResult, MutationTask } from './opa/mutation-worker.ts';

const WORKERS = 2;
/** Fewer would say nothing. */
const FEWEST_MUTANTS = 40;

/** All mutants in the order of files and lines. */
function everyMutant(): Mutant[] {
  const files = policySources(POLICY_DIRECTORY).filter((file) => file.endsWith('.rego'));
  return files.flatMap((file) => mutantsOf(file, readFileSync(path.join(POLICY_DIRECTORY, file), 'utf8')));
}

function runTask(task: MutationTask, onResult: (result: MutationResult) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const worker = new Worker(new URL('./opa/mutation-worker.ts', import.meta.url), { workerData: task });
  worker.on('message', onResult);
  worker.on('error', reject);
  worker.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`A worker ended with code ${code}.`))));
  return promise;
}

/** Judges all mutants, every second one in each of two workers. */
async function judgeAll(mutants: readonly Mutant[], seed: number, runs: number): Promise<MutationResult[]> {
  const results: MutationResult[] = [];
  const tasks = Array.from({ length: WORKERS }, (_, worker) => ({
    mutants: mutants.filter((_mutant, index) => index % WORKERS === worker),
    seed,
    runs,
  }));
  const progress = (result: MutationResult): void => {
    results.push(result);
    if (results.length % 100 === 0) console.error(`${results.length} of ${mutants.length}`);
  };
  await Promise.all(tasks.map((task) => runTask(task, progress)));
  const order = new Map(mutants.map(({ source }, index) => [source, index]));
  const placeOf = ({ mutant }: MutationResult): number => order.get(mutant.source) ?? 0;
  return results.sort((a, b) => placeOf(a) - placeOf(b));
}

const describe = ({ file, line, change, before, after }: Mutant): string =>
  `policy/${file}:${line} ${change}\n    - ${before}\n    + ${after}`;

const fateOf = ({ fate }: MutationResult): string => (typeof fate === 'string' ? fate : `caught by ${fate.by}`);

/** Prints the outcome; true when every survivor is explained and every explanation needed. */
function report(results: readonly MutationResult[], verbose: boolean): boolean {
  if (verbose) for (const result of results) console.log(`${describe(result.mutant)}\n    ${fateOf(result)}`);
  const compiled = results.filter(({ fate }) => fate !== 'stillborn');
  console.log(`${results.length} mutants, of which ${compiled.length} compile:`);
  for (const [fate, group] of Map.groupBy(compiled, fateOf))
    console.log(`  ${String(group.length).padStart(4)} ${fate}`);
  const survivors = compiled.filter(({ fate }) => fate === 'survived').map(({ mutant }) => mutant);
  const { unexplained, stale } = compareWithExplained(survivors);
  for (const mutant of unexplained)
    console.log(`Survived, and policy/MUTANTS.md does not say why: ${describe(mutant)}`);
  for (const { file, before } of stale)
    console.log(`policy/MUTANTS.md explains a mutant that is caught: ${file}: ${before}`);
  return compiled.length >= FEWEST_MUTANTS && unexplained.length === 0 && stale.length === 0;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      runs: { type: 'string', default: '3000' },
      seed: { type: 'string', default: '42' },
      verbose: { type: 'boolean', default: false },
      only: { type: 'string', default: '' },
    },
  });
  if (findOpa() === null) throw new Error(MISSING_OPA);
  const mutants = everyMutant().filter(({ file, line }) => `${file}:${line}`.includes(values.only));
  const results = await judgeAll(mutants, Number(values.seed), Number(values.runs));
  if (!report(results, values.verbose)) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
