import type BetterSqlite3 from 'better-sqlite3';
import { LRUCache } from 'lru-cache';

/**
 * Tells whether anything but the ledger's own bookkeeping may have changed: SQLite's `data_version` moves when another connection
 * commits, the number in `changes` when what it commits is no bookkeeping, and this connection says what it writes itself. One look
 * serves a whole turn of the event loop: the requests of a turn had arrived when it began, so none of them was sent after a change
 * that the look missed.
 */
export class Freshness {
  readonly #dataVersion: BetterSqlite3.Statement<[], unknown>;
  readonly #changes: BetterSqlite3.Statement<[], unknown>;
  #seenVersion: unknown;
  #seenChanges: unknown;
  #epoch = 0;
  #pinned = false;
  #hasLooked = false;

  constructor(connection: BetterSqlite3.Database) {
    this.#dataVersion = connection.prepare<[], unknown>('PRAGMA data_version').pluck();
    this.#changes = connection.prepare<[], unknown>('SELECT number FROM changes').pluck();
    this.#seenVersion = this.#dataVersion.get();
    this.#seenChanges = this.#changes.get();
  }

  /** Stays the same only while nothing has changed. */
  epoch(): number {
    if (!this.#pinned && !this.#hasLooked) {
      this.#look();
      this.#hasLooked = true;
      setImmediate(this.#endTurn);
    }
    return this.#epoch;
  }

  /** The epoch at the last look. */
  lastEpoch(): number {
    return this.#epoch;
  }

  /** Runs `work` inside a write transaction: nobody else can commit until it ends, so one look is enough. */
  during<T>(work: () => T): T {
    this.#look();
    this.#pinned = true;
    try {
      return work();
    } finally {
      this.#pinned = false;
    }
  }

  /** This connection writes something. */
  changed(): void {
    this.#epoch += 1;
  }

  #look(): void {
    const version = this.#dataVersion.get();
    if (version === this.#seenVersion) return;
    this.#seenVersion = version;
    const changes = this.#changes.get();
    if (changes === this.#seenChanges) return;
    this.#seenChanges = changes;
    this.#epoch += 1;
  }

  readonly #endTurn = (): void => {
    this.#hasLooked = false;
  };
}

/** Remembers what was read for as long as nothing changes. */
export class FreshReads<Value> {
  readonly #freshness: Freshness;
  readonly #known: LRUCache<string, { readonly epoch: number; readonly value: Value }>;

  constructor(freshness: Freshness, capacity: number) {
    this.#freshness = freshness;
    this.#known = new LRUCache({ max: capacity });
  }

  get(key: string): Value | undefined {
    const known = this.#known.get(key);
    return known !== undefined && known.epoch === this.#freshness.epoch() ? known.value : undefined;
  }

  /**
   * @param epoch `lastEpoch` from before the read, in the same turn: whatever another process commits from then on, and another reader sees
   * for it meanwhile, the `get` of the next turn sees it
   */
  set(key: string, value: Value, epoch: number): void {
    this.#known.set(key, { epoch, value });
  }
}
