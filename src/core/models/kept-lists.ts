import { setImmediate } from 'node:timers/promises';
import type { ModelListBytes } from './model-list-bytes.ts';

const KEPT_FOR_MS = 60_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** What a list takes for each of its bytes: these, and the names that point into them. */
const COST_OF_A_BYTE = 2;

interface Kept {
  readonly list: ModelListBytes;
  readonly until: number;
}

/**
 * Lists of models by what they were made of, for a minute, the newest of them in bounded memory. A list is built once for all who
 * ask meanwhile, and at most one in a turn of the event loop: each takes some 10 ms.
 */
export class KeptLists {
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;
  readonly #building = new Map<string, Promise<ModelListBytes>>();
  #lastTurn: Promise<void> = Promise.resolve();

  /** The list under this key; rejects with what `build` throws. */
  async get(key: string, build: () => ModelListBytes): Promise<ModelListBytes> {
    const kept = this.#kept.get(key);
    if (kept !== undefined && performance.now() < kept.until) return kept.list;
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
      this.#keep(key, list);
      return list;
    } finally {
      this.#building.delete(key);
    }
  }

  #keep(key: string, list: ModelListBytes): void {
    this.#forget(key);
    this.#kept.set(key, { list, until: performance.now() + KEPT_FOR_MS });
    this.#bytes += COST_OF_A_BYTE * list.bytes.length;
    for (const oldest of this.#kept.keys()) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    this.#bytes -= COST_OF_A_BYTE * kept.list.bytes.length;
  }
}
