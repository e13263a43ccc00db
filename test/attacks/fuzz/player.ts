// Plays the steps: draws a generator for each, runs a few side by side, and looks that each ends.
import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../crash/random.ts';
import { Attack, LOST_MS } from './attack.ts';
import type { StepRecord } from './findings.ts';
import type { Named } from './generators.ts';
import type { Run } from './run.ts';

/** Steps that run at once, in all. */
const WORKERS = 48;
/** Before a worker draws again, when the generator that it has drawn is busy enough. */
const PAUSE_MS = 5;
/** A step sends a few requests after each other, or many on one connection; none takes longer than `LOST_MS`. */
const LONGEST_STEP_MS = 3 * LOST_MS;

export class Player {
  readonly #run: Run;
  readonly #generators: readonly [Named, ...Named[]];
  readonly #running = new Map<string, number>();
  #next: number;
  #played = 0;

  /** @param first number of its first step: no two steps of a run have the same */
  constructor(run: Run, generators: readonly [Named, ...Named[]], first = 0) {
    this.#run = run;
    this.#generators = generators;
    this.#next = first;
  }

  /** The number of the step after the last that was drawn. */
  get next(): number {
    return this.#next;
  }

  /** How many steps were begun. */
  get played(): number {
    return this.#played;
  }

  /** Each step's choices follow from the seed and its number alone, whatever the others do. */
  #randomOf(step: number): Random {
    return new Random(Math.imul(this.#run.seed, 0x9e3779b1) ^ Math.imul(step + 1, 0x85ebca6b));
  }

  #draw(random: Random): Named {
    const total = this.#generators.reduce((sum, { weight }) => sum + weight, 0);
    let left = random.next() * total;
    for (const generator of this.#generators) {
      left -= generator.weight;
      if (left < 0) return generator;
    }
    return this.#generators[0];
  }

  /** Plays one step, however busy its generator is. */
  async play(step: number): Promise<void> {
    const random = this.#randomOf(step);
    await this.#begin(step, random, this.#draw(random));
  }

  async #begin(step: number, random: Random, { name, generator }: Named): Promise<void> {
    const record: StepRecord = { step, generator: name, sent: [] };
    this.#run.records.set(step, record);
    this.#running.set(name, (this.#running.get(name) ?? 0) + 1);
    this.#played += 1;
    try {
      await generator(new Attack(this.#run, random, record));
    } catch (error) {
      // No answer of the gateway may make a generator fail: it is the fuzzer's own fault.
      const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#run.findings.report('the fuzzer itself works', told, record);
    } finally {
      this.#running.set(name, (this.#running.get(name) ?? 0) - 1);
      this.#run.records.delete(step);
    }
  }

  /** Steps whose generator is busy enough are left out. */
  async #work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const step = this.#next++;
      const random = this.#randomOf(step);
      const drawn = this.#draw(random);
      if ((this.#running.get(drawn.name) ?? 0) < (drawn.most ?? WORKERS)) await this.#begin(step, random, drawn);
      else await sleep(PAUSE_MS);
    }
  }

  /** Plays steps until it is over, and waits for the last of them; a step that does not end is a finding. */
  async playUntil(isOver: () => boolean): Promise<void> {
    const working = Promise.all(Array.from({ length: WORKERS }, () => this.#work(isOver)));
    const waiting = (async () => {
      while (!isOver()) await sleep(100);
      await sleep(LONGEST_STEP_MS, undefined, { ref: false });
    })();
    await Promise.race([working, waiting]);
    const stuck = [...this.#run.records.values()];
    if (stuck.length > 0 && !this.#run.isOver)
      this.#run.findings.report('every request ends', `${stuck.length} steps still run`, ...stuck);
  }
}
