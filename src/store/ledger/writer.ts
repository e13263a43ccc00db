import type { Database } from '../db/database.ts';
import { classify, isBusy, StoreUnavailable } from '../db/sqlite-file.ts';

interface QueuedOperation {
  /** Runs the operation in the open transaction; what it returns tells its caller, once the transaction is committed. */
  run(): () => void;
  reject(error: unknown): void;
}

/**
 * The one ordered writer. Operations of one turn of the event loop share a transaction; none is acknowledged before its
 * transaction is committed. Operations are synchronous, and may run a second time after their group was rolled back, so they
 * must have no effect but on the database.
 */
export class GroupWriter {
  readonly #transaction: Database['transaction'];
  readonly #capacity: number;
  #queue: QueuedOperation[] = [];

  /** @param capacity operations that may wait; further ones are refused with `StoreUnavailable`. */
  constructor(transaction: Database['transaction'], capacity = 10_000) {
    this.#transaction = transaction;
    this.#capacity = capacity;
  }

  /** Operations that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Resolves with the operation's result after it is committed; rejects with what it threw, or with `StoreUnavailable`. */
  enqueue<T>(operation: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#queue.length >= this.#capacity) {
        reject(new StoreUnavailable(new Error('The queue of writes is full.')));
        return;
      }
      if (this.#queue.length === 0) setImmediate(() => this.flush());
      this.#queue.push({
        run: () => {
          const result = operation();
          return () => resolve(result);
        },
        reject,
      });
    });
  }

  /** Runs and commits everything that waits, now. */
  flush(): void {
    const group = this.#queue;
    this.#queue = [];
    if (group.length === 0) return;
    try {
      this.#commit(group);
    } catch (error) {
      this.#afterFailure(group, error);
    }
  }

  #commit(group: readonly QueuedOperation[]): void {
    const acknowledgements = this.#transaction(() => group.map((operation) => operation.run()));
    for (const acknowledge of acknowledgements) acknowledge();
  }

  /** A lock held by another process fails the whole group at once; any other fault is kept to the operation that caused it. */
  #afterFailure(group: readonly QueuedOperation[], error: unknown): void {
    if (group.length === 1 || isBusy(error)) {
      for (const operation of group) operation.reject(classify(error));
      return;
    }
    for (const operation of group) {
      try {
        this.#commit([operation]);
      } catch (cause) {
        operation.reject(classify(cause));
      }
    }
  }
}

/** After so many tries, about five seconds, the caller gets the error; the settlement is still kept. */
const TRIES_FOR_CALLER = 10;
const QUICK_WAIT_MS = 300;
const SLOW_WAIT_MS = 5000;

interface KeptSettlement {
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
  readonly #kept = new Set<KeptSettlement>();
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

  #retryLater({ tries }: KeptSettlement): void {
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

  async #retry(kept: KeptSettlement): Promise<void> {
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
