import type { Database } from '../db/database.ts';
import { classify, isBusy, StoreUnavailable } from '../db/unavailable.ts';

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
