import type { ModelListBytes } from './model-list-bytes.ts';

const KEPT_FOR_MS = 60_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** What a list takes for each of its bytes: these, and the names that point into them. */
const COST_OF_A_BYTE = 2;

interface Kept {
  readonly list: ModelListBytes;
  readonly until: number;
}

/** Lists of models by what they were made of, for a minute, the newest of them in bounded memory. */
export class KeptLists {
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  get(key: string): ModelListBytes | undefined {
    const kept = this.#kept.get(key);
    return kept !== undefined && performance.now() < kept.until ? kept.list : undefined;
  }

  set(key: string, list: ModelListBytes): void {
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
