/** A map of bounded size that forgets what was not asked for longest. */
export class RecentMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #capacity: number;
  /** Asked for last: it need not be moved to the end, which is where the busiest key nearly always is. */
  #newest: Key | undefined;

  /** @param capacity most entries that are remembered, at least one */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined && key !== this.#newest) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
      this.#newest = key;
    }
    return value;
  }

  delete(key: Key): void {
    this.#entries.delete(key);
    if (key === this.#newest) this.#newest = undefined;
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  set(key: Key, value: Value): void {
    this.#entries.delete(key);
    if (this.#entries.size >= this.#capacity) {
      const [oldest] = this.#entries.keys();
      if (oldest !== undefined) this.#entries.delete(oldest);
    }
    this.#entries.set(key, value);
    this.#newest = key;
  }
}
