import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly rounds: number;
  /** Seconds of each measurement: per target two in a round, and three more where it passes streams on. */
  readonly seconds: number;
  /** Where to write every figure as JSON, or undefined. */
  readonly json: string | undefined;
  /** What to measure: the servers under load, the memory of many streams, the decision alone, analyses, usage reports, or all of it. */
  readonly parts: ReadonlySet<Part>;
  /** Folder of another checkout, with its packages, whose gateway is measured under load next to this one; or undefined. */
  readonly against: string | undefined;
}

export type Part = 'load' | 'streams' | 'decision' | 'analysis' | 'usage';

const PARTS: readonly Part[] = ['load', 'streams', 'decision', 'analysis', 'usage'];

const USAGE = `npm run bench -- [--rounds N] [--seconds N] [--only load|streams|decision|analysis|usage] [--against FOLDER] [--json FILE]
  --rounds   1 to 100, default 5 (or BENCH_ROUNDS)
  --seconds  1 to 60 for each measurement, default 3 (or BENCH_SECONDS)
  --only     the servers under load, the memory of many streams, the decision alone, the analyses, or usage reports; default all
  --against  also put the gateway of another checkout under load (an older commit after \`npm ci\`), and compare
  --json     also write every figure to FILE
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
    },
  });
  return {
    rounds: integer('--rounds', values.rounds, 100),
    seconds: integer('--seconds', values.seconds, 60),
    json: values.json,
    parts: partsOf(values.only),
    against: values.against,
  };
}
