import { ApiError } from './errors.ts';

export interface TurnsOptions {
  /** Name of the work that waits. */
  readonly what?: string;
  /** Most work that runs at once, of all callers together. */
  readonly atOnce?: number;
  /** Most of that for one caller. */
  readonly atOnceEach?: number;
  /** Most work that may wait, of all callers together. */
  readonly maxWaiting?: number;
  /** Most of that for one caller. */
  readonly maxWaitingEach?: number;
  /** Most of a caller's waiting work for one part. */
  readonly maxWaitingPart?: number;
  /** Milliseconds that work may wait for its turn. */
  readonly maxWaitMs?: number;
}

interface Waiting {
  readonly start: () => void;
  readonly giveUp: (error: ApiError) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Runs a few pieces of work at a time, one by default. Callers take turns, so that one with much work does not delay another by more
 * than one piece; and the parts of a caller, such as the keys of an organization, take turns in the caller's own.
 */
export class Turns {
  readonly #what: string;
  readonly #atOnce: number;
  readonly #atOnceEach: number;
  readonly #maxWaiting: number;
  readonly #maxWaitingEach: number;
  readonly #maxWaitingPart: number;
  readonly #maxWaitMs: number;
  /** By caller and part, the one whose turn is next first; each list in the order in which the work came. */
  readonly #waiting = new Map<string, Map<string, Waiting[]>>();
  /** Pieces of work, by caller. */
  readonly #running = new Map<string, number>();
  #runningInAll = 0;

  constructor({
    what = 'analyses and reports',
    atOnce = 1,
    atOnceEach = atOnce,
    maxWaiting = 8,
    maxWaitingEach = 2,
    maxWaitingPart = maxWaitingEach,
    maxWaitMs = 60_000,
  }: TurnsOptions = {}) {
    this.#what = what;
    this.#atOnce = atOnce;
    this.#atOnceEach = atOnceEach;
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingEach = maxWaitingEach;
    this.#maxWaitingPart = maxWaitingPart;
    this.#maxWaitMs = maxWaitMs;
  }

  /**
   * @param caller an organization, or an address @param part of it, such as a key @throws ApiError 503 when too much waits already, of
   * all, of this caller or of this part, or after `maxWaitMs`; whatever the work throws
   */
  async take<T>(caller: string, work: () => Promise<T>, part = ''): Promise<T> {
    if (this.#mayStart(caller)) this.#count(caller, 1);
    else await this.#turnOf(caller, part);
    try {
      return await work();
    } finally {
      this.#count(caller, -1);
      this.#startNext();
    }
  }

  #mayStart(caller: string): boolean {
    return this.#runningInAll < this.#atOnce && (this.#running.get(caller) ?? 0) < this.#atOnceEach;
  }

  #count(caller: string, more: 1 | -1): void {
    this.#runningInAll += more;
    const running = (this.#running.get(caller) ?? 0) + more;
    if (running === 0) this.#running.delete(caller);
    else this.#running.set(caller, running);
  }

  #turnOf(caller: string, part: string): Promise<void> {
    const parts = this.#waiting.get(caller) ?? new Map<string, Waiting[]>();
    const list = parts.get(part) ?? [];
    const all = [...this.#waiting.values()].reduce((count, each) => count + waitingIn(each), 0);
    const isFull = all >= this.#maxWaiting || waitingIn(parts) >= this.#maxWaitingEach;
    if (isFull || list.length >= this.#maxWaitingPart) throw this.#busy();
    return new Promise((start, giveUp) => {
      const timer = setTimeout(() => this.#leave(caller, part, waiting), this.#maxWaitMs);
      const waiting: Waiting = { start, giveUp, timer };
      list.push(waiting);
      parts.set(part, list);
      this.#waiting.set(caller, parts);
    });
  }

  #busy(): ApiError {
    return new ApiError(503, 'overloaded', `Too many ${this.#what} are waiting. Try again shortly.`, {
      headers: { 'retry-after': '5' },
    });
  }

  #startNext(): void {
    const caller = this.#waiting.keys().find((each) => this.#mayStart(each));
    const next = caller === undefined ? undefined : this.#next(caller);
    if (caller === undefined || next === undefined) return;
    clearTimeout(next.timer);
    // At once: nobody who comes before the work starts may start theirs.
    this.#count(caller, 1);
    next.start();
  }

  /** The caller, and the part of it, whose turn it is come last from now on. */
  #next(caller: string): Waiting | undefined {
    const parts = this.#waiting.get(caller) ?? new Map<string, Waiting[]>();
    const [turnOfPart] = parts;
    const [part = '', list = []] = turnOfPart ?? [];
    const first = list.shift();
    parts.delete(part);
    if (list.length > 0) parts.set(part, list);
    this.#waiting.delete(caller);
    if (parts.size > 0) this.#waiting.set(caller, parts);
    return first;
  }

  #leave(caller: string, part: string, waiting: Waiting): void {
    const parts = this.#waiting.get(caller);
    const list = parts?.get(part);
    list?.splice(list.indexOf(waiting), 1);
    if (list?.length === 0) parts?.delete(part);
    if (parts?.size === 0) this.#waiting.delete(caller);
    waiting.giveUp(this.#busy());
  }
}

const waitingIn = (parts: ReadonlyMap<string, readonly Waiting[]>): number =>
  [...parts.values()].reduce((count, { length }) => count + length, 0);
