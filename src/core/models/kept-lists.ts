import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { ModelListBytes } from './model-list-bytes.ts';

const KEPT_FOR_MS = 60_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** What a list takes for each of its bytes: these, and the names that point into them. */
const COST_OF_A_BYTE = 2;

/**
 * Lists of models by what they were made of, for a minute, in bounded memory. A list is built once for all who
 * ask meanwhile, and at most one in a turn of the event loop: each takes some 10 ms.
 */
export class KeptLists {
  readonly #kept = new LRUCache<string, ModelListBytes>({
    maxSize: MAX_BYTES,
    sizeCalculation: ({ bytes }) => COST_OF_A_BYTE * bytes.length,
    ttl: KEPT_FOR_MS,
  });
  readonly #building = new Map<string, Promise<ModelListBytes>>();
  #lastTurn: Promise<void> = Promise.resolve();

  /** The list under this key; rejects with what `build` throws. */
  async get(key: string, build: () => ModelListBytes): Promise<ModelListBytes> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const building = this.#building.get(key) ?? this.#build(key, build);
    this.#building.set(key, building);
    return building;
  }

  async #build(key: string, build: () => ModelListBytes): Promise<ModelListBytes> {
    const turn = this.#lastTurn.then(() => setImmediate());
    this.#lastTurn = turn;
    await turn;
    try {
      const list = build();
      this.#kept.set(key, list);
      return list;
    } finally {
      this.#building.delete(key);
    }
  }
}
