import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

interface Known {
  readonly id: number;
  readonly usedOn: number;
}

/** Characters of the keys of one table that are remembered. */
const MAX_CHARACTERS = 16_000_000;
/** What is remembered of a row takes about as much besides its key. */
const OVERHEAD = 100;

/**
 * Rows of one table that many calls refer to. Each tells the last day on which it was referred to: none earlier than that of any call
 * that refers to it, so that retention may delete the rows whose day is over for all calls that are left. What is remembered spares the
 * look into the table for the rest of the day; what a transaction stored that was undone is forgotten.
 */
export class Interned<Values> {
  readonly #store: (values: Values, digest: Buffer, day: number) => number;
  readonly #known = new LRUCache<string, Known>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_, key) => key.length + OVERHEAD,
  });
  #uncommitted: string[] = [];

  /** @param store stores the row unless one of its digest is there, notes the day, and returns its id */
  constructor(store: (values: Values, digest: Buffer, day: number) => number) {
    this.#store = store;
  }

  /** @param key tells these values from all others @param day of the call that refers to the row */
  idOf(key: string, values: Values, day: number): number {
    const known = this.#known.get(key);
    if (known !== undefined && known.usedOn >= day) return known.id;
    const id = this.#store(values, hash('sha256', key, 'buffer'), day);
    this.#known.set(key, { id, usedOn: day });
    this.#uncommitted.push(key);
    return id;
  }

  /** The transaction was committed, or undone. */
  ended(committed: boolean): void {
    if (this.#uncommitted.length === 0) return;
    if (!committed) for (const key of this.#uncommitted) this.#known.delete(key);
    this.#uncommitted = [];
  }
}
