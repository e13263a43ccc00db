/** How properties run: PROPERTY_SEED repeats a run (each prints its own), PROPERTY_RUNS makes it longer or shorter. */
import type { Parameters } from 'fast-check';

const SEED = Number(process.env.PROPERTY_SEED ?? Math.floor(Math.random() * 2 ** 31));

process.stdout.write(`properties run with PROPERTY_SEED=${SEED}\n`);

export function propertyRuns<T>(defaultRuns: number): Parameters<T> {
  const numRuns = Number(process.env.PROPERTY_RUNS ?? defaultRuns);
  return { seed: SEED, numRuns };
}

/** Milliseconds that a property may take: far more than it needs, and more for a longer run. */
export function propertyTimeout(defaultRuns: number): number {
  return 60_000 + 10 * Number(process.env.PROPERTY_RUNS ?? defaultRuns);
}
