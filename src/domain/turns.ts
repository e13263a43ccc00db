import { ApiError } from './errors.ts';

export interface TurnsOptions {
  /** How much may wait, of all organizations together. */
  readonly maxWaiting?: number;
  /** How much of that may be one organization's. */
  readonly maxWaitingEach?: number;
  /** Milliseconds that work may wait for its turn. */
  readonly maxWaitMs?: number;
}

interface Waiting {
  readonly start: () => void;
  readonly giveUp: (error: ApiError) => void;
  readonly timer: NodeJS.Timeout;
}

const busy = (): ApiError =>
  new ApiError(503, 'overloaded', 'Too many analyses and reports are waiting. Try again shortly.', {
    headers: { 'retry-after': '5' },
  });

/** Runs one piece of work at a time. Organizations take turns, so that one with much work does not delay another by more than one piece. */
export class Turns {
  readonly #maxWaiting: number;
  readonly #maxWaitingEach: number;
  readonly #maxWaitMs: number;
  /** By organization, the one whose turn is next first; each list in the order in which the work came. */
  readonly #waiting = new Map<string, Waiting[]>();
  #isRunning = false;

  constructor({ maxWaiting = 8, maxWaitingEach = 2, maxWaitMs = 60_000 }: TurnsOptions = {}) {
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingEach = maxWaitingEach;
    this.#maxWaitMs = maxWaitMs;
  }

  /** @throws ApiError 503 when too much waits already, of all or of this organization, or after `maxWaitMs`; whatever the work throws */
  async take<T>(organizationId: string, work: () => Promise<T>): Promise<T> {
    if (this.#isRunning) await this.#turnOf(organizationId);
    this.#isRunning = true;
    try {
      return await work();
    } finally {
      this.#isRunning = false;
      this.#startNext();
    }
  }

  #turnOf(organizationId: string): Promise<void> {
    const all = [...this.#waiting.values()].reduce((count, list) => count + list.length, 0);
    const theirs = this.#waiting.get(organizationId) ?? [];
    if (all >= this.#maxWaiting || theirs.length >= this.#maxWaitingEach) throw busy();
    return new Promise((start, giveUp) => {
      const timer = setTimeout(() => this.#leave(organizationId, waiting), this.#maxWaitMs);
      const waiting: Waiting = { start, giveUp, timer };
      this.#waiting.set(organizationId, [...theirs, waiting]);
    });
  }

  #startNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    const [organizationId, [first, ...others]] = next;
    this.#waiting.delete(organizationId);
    if (others.length > 0) this.#waiting.set(organizationId, others);
    if (first === undefined) return;
    clearTimeout(first.timer);
    // At once: nobody who comes before the work starts may start theirs.
    this.#isRunning = true;
    first.start();
  }

  #leave(organizationId: string, waiting: Waiting): void {
    const others = (this.#waiting.get(organizationId) ?? []).filter((one) => one !== waiting);
    if (others.length > 0) this.#waiting.set(organizationId, others);
    else this.#waiting.delete(organizationId);
    waiting.giveUp(busy());
  }
}
