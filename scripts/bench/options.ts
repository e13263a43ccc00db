import { parseArgs } from 'node:util';
import type { BudgetUse } from './cost/bench-cost.ts';
import type { CounterName } from './cost/counters.ts';

export interface BenchOptions {
  readonly rounds: number;
  /** Seconds of each measurement: per target two in a round, and three more where it passes streams on. */
  readonly seconds: number;
  /** Where to write every figure as JSON, or undefined. */
  readonly json: string | undefined;
  /** What to measure: the servers under load, the memory of many streams and of ten minutes under load, the decision alone, analyses, usage reports, the cost of a call by step, or all of it. */
  readonly parts: ReadonlySet<Part>;
  /** Folder of another checkout, with its packages, whose gateway is measured under load next to this one; or undefined. */
  readonly against: string | undefined;
  readonly budget: BudgetUse;
  /** How instructions are to be counted; undefined: by hardware counters where there are any. */
  readonly counter: CounterName | undefined;
}

export type Part = 'load' | 'streams' | 'memory' | 'decision' | 'analysis' | 'usage' | 'cost';

const PARTS: readonly Part[] = ['load', 'streams', 'memory', 'decision', 'analysis', 'usage', 'cost'];

const USAGE = `npm run bench -- [--rounds N] [--seconds N] [--only ${PARTS.join('|')}] [--against FOLDER] [--json FILE]
npm run bench -- --only cost [--check | --update] [--counter perf|qemu]
  --rounds   1 to 100, default 5 (or BENCH_ROUNDS)
  --seconds  1 to 60 for each measurement, default 3 (or BENCH_SECONDS)
  --only     the servers under load, the memory of many streams, the memory of ten minutes under load, the decision alone, the
             analyses, usage reports, or the cost of a call by step; default all
  --against  also put the gateway of another checkout under load (an older commit after \`npm ci\`), and compare
  --json     also write every figure to FILE
  --check    measure what the budget of a call bounds, and fail when a step exceeds it by more than 15 %
  --update   write the budget and the tables of scripts/bench/README.md
  --counter  how to count instructions: by perf (default where there are hardware counters), or by QEMU, which takes many minutes
The decision is measured with a million keys in a database of some gigabytes in the temporary folder (TMPDIR).`;

function integer(name: string, text: string, largest: number): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > largest) {
    throw new Error(`${name} must be a whole number from 1 to ${largest}, not ${JSON.stringify(text)}\n${USAGE}`);
  }
  return value;
}

function partsOf(only: string | undefined): ReadonlySet<Part> {
  if (only === undefined) return new Set(PARTS);
  const part = PARTS.find((known) => known === only);
  if (part === undefined) throw new Error(`--only takes ${PARTS.join(', ')}, not ${JSON.stringify(only)}\n${USAGE}`);
  return new Set([part]);
}

function budgetUse({ check, update }: { check: boolean; update: boolean }): BudgetUse {
  if (check && update) throw new Error(`--check and --update exclude each other\n${USAGE}`);
  if (check) return 'check';
  return update ? 'update' : 'show';
}

function counterOf(name: string | undefined): CounterName | undefined {
  if (name === undefined || name === 'perf' || name === 'qemu') return name;
  throw new Error(`--counter takes perf or qemu, not ${JSON.stringify(name)}\n${USAGE}`);
}

/** Reads flags and, for rounds and seconds, the environment; throws with the usage on anything else. */
export function readOptions(args: string[], env: NodeJS.ProcessEnv): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: 'string', default: env.BENCH_ROUNDS ?? '5' },
      seconds: { type: 'string', default: env.BENCH_SECONDS ?? '3' },
      only: { type: 'string' },
      against: { type: 'string' },
      json: { type: 'string' },
      check: { type: 'boolean', default: false },
      update: { type: 'boolean', default: false },
      counter: { type: 'string' },
    },
  });
  return {
    rounds: integer('--rounds', values.rounds, 100),
    seconds: integer('--seconds', values.seconds, 60),
    json: values.json,
    parts: partsOf(values.only),
    against: values.against,
    budget: budgetUse(values),
    counter: counterOf(values.counter),
  };
}
