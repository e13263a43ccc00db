import { LRUCache } from 'lru-cache';
import type { Clock } from './time.ts';

/** What is kept for someone for a few minutes and can be taken once; a later value replaces it. In memory, of bounded number. */
export class OneTime<Value> {
  readonly #values: LRUCache<string, { readonly value: Value; readonly until: number }>;
  readonly #clock: Clock;
  readonly #lifeMs: number;

  constructor(clock: Clock, { lifeMs = 300_000, most = 10_000 } = {}) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
    this.#values = new LRUCache({ max: most });
  }

  put(owner: string, value: Value): void {
    this.#values.set(owner, { value, until: this.#clock.now() + this.#lifeMs });
  }

  take(owner: string): Value | undefined {
    const kept = this.#values.get(owner);
    this.#values.delete(owner);
    return kept === undefined || kept.until <= this.#clock.now() ? undefined : kept.value;
  }
}
