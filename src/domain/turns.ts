import { ApiError } from './errors.ts';

export interface TurnsOptions {
  /** What waits, in words. */
  readonly what?: string;
  /** How much may wait, of all callers together. */
  readonly maxWaiting?: number;
  /** How much of that may be one caller's. */
  readonly maxWaitingEach?: number;
  /** Milliseconds that work may wait for its turn. */
  readonly maxWaitMs?: number;
}

interface Waiting {
  readonly start: () => void;
  readonly giveUp: (error: ApiError) => void;
  readonly timer: NodeJS.Timeout;
}

/** Runs one piece of work at a time. Callers take turns, so that one with much work does not delay another by more than one piece. */
export class Turns {
  readonly #what: string;
  readonly #maxWaiting: number;
  readonly #maxWaitingEach: number;
  readonly #maxWaitMs: number;
  /** By caller, the one whose turn is next first; each list in the order in which the work came. */
  readonly #waiting = new Map<string, Waiting[]>();
  #isRunning = false;

  constructor({
    what = 'analyses and reports',
    maxWaiting = 8,
    maxWaitingEach = 2,
    maxWaitMs = 60_000,
  }: TurnsOptions = {}) {
    this.#what = what;
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingEach = maxWaitingEach;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * @param caller an organization, or an address. @throws ApiError 503 when too much waits already, of all or of this caller, or after
   * `maxWaitMs`; whatever the work throws
   */
  async take<T>(caller: string, work: () => Promise<T>): Promise<T> {
    if (this.#isRunning) await this.#turnOf(caller);
    this.#isRunning = true;
    try {
      return await work();
    } finally {
      this.#isRunning = false;
      this.#startNext();
    }
  }

  #turnOf(caller: string): Promise<void> {
    const all = [...this.#waiting.values()].reduce((count, list) => count + list.length, 0);
    const theirs = this.#waiting.get(caller) ?? [];
    if (all >= this.#maxWaiting || theirs.length >= this.#maxWaitingEach) throw this.#busy();
    return new Promise((start, giveUp) => {
      const timer = setTimeout(() => this.#leave(caller, waiting), this.#maxWaitMs);
      const waiting: Waiting = { start, giveUp, timer };
      this.#waiting.set(caller, [...theirs, waiting]);
    });
  }

  #busy(): ApiError {
    return new ApiError(503, 'overloaded', `Too many ${this.#what} are waiting. Try again shortly.`, {
      headers: { 'retry-after': '5' },
    });
  }

  #startNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [caller, [first, ...others]] = next;
    this.#waiting.delete(caller);
    if (others.length > 0) this.#waiting.set(caller, others);
    if (first === undefined) return;
    clearTimeout(first.timer);
    // At once: nobody who comes before the work starts may start theirs.
    this.#isRunning = true;
    first.start();
  }

  #leave(caller: string, waiting: Waiting): void {
    const others = (this.#waiting.get(caller) ?? []).filter((one) => one !== waiting);
    if (others.length > 0) this.#waiting.set(caller, others);
    else this.#waiting.delete(caller);
    waiting.giveUp(this.#busy());
  }
}
