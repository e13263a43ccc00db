import { StoreUnavailable } from '../db/unavailable.ts';

/** After so many tries, about five seconds, the caller gets the error; the settlement is still kept. */
const TRIES_FOR_CALLER = 10;
const QUICK_WAIT_MS = 300;
const SLOW_WAIT_MS = 5000;

interface Kept {
  readonly settle: () => Promise<boolean>;
  readonly resolve: (booked: boolean) => void;
  readonly reject: (error: unknown) => void;
  tries: number;
}

/**
 * Settlements that the database could not take, tried again for as long as the process lives: what a call cost is known only
 * here, and what is held back for it stays so until it is booked. Trying twice is safe: a row is settled only while it is open.
 */
export class SettlementRetries {
  readonly #capacity: number;
  readonly #kept = new Set<Kept>();
  #timer: NodeJS.Timeout | undefined;
  #isQuick = false;
  #closed = false;

  /** @param capacity settlements that are kept; further ones are left to the recovery at the next start. */
  constructor(capacity = 5000) {
    this.#capacity = capacity;
  }

  /** @throws what `settle` throws; `StoreUnavailable` only after ten tries, and then it may be booked later. */
  async run(settle: () => Promise<boolean>): Promise<boolean> {
    try {
      return await settle();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || this.#closed || this.#kept.size >= this.#capacity) throw error;
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      const kept = { settle, resolve, reject, tries: 1 };
      this.#kept.add(kept);
      this.#retryLater(kept);
      return promise;
    }
  }

  /** Hands all that is kept to the writer for the last time; what fails then is left to the recovery. */
  close(): void {
    this.#closed = true;
    this.#retryAll();
  }

  #retryLater({ tries }: Kept): void {
    const quick = tries < TRIES_FOR_CALLER;
    if (this.#timer !== undefined && (this.#isQuick || !quick)) return;
    clearTimeout(this.#timer);
    this.#isQuick = quick;
    this.#timer = setTimeout(() => this.#retryAll(), quick ? QUICK_WAIT_MS : SLOW_WAIT_MS).unref();
  }

  /** All in one turn, so that they share a transaction: waiting for another process's lock stops everything else. */
  #retryAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const kept of this.#kept) void this.#retry(kept);
  }

  async #retry(kept: Kept): Promise<void> {
    try {
      kept.resolve(await kept.settle());
      this.#kept.delete(kept);
    } catch (error) {
      kept.tries += 1;
      const willRetry = error instanceof StoreUnavailable && !this.#closed;
      if (!willRetry || kept.tries >= TRIES_FOR_CALLER) kept.reject(error);
      if (willRetry) this.#retryLater(kept);
      else this.#kept.delete(kept);
    }
  }
}
