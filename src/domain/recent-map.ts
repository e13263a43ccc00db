/** A map of bounded size that forgets what was not asked for longest. */
export class RecentMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #capacity: number;

  /** @param capacity most entries that are remembered, at least one */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
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
  }
}
