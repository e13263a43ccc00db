const MIN_CAPACITY = 256;
const NOTHING = Buffer.alloc(0);

/**
 * Bytes that come in pieces, in one buffer whatever the pieces are: a list of a million small ones takes a hundred times their bytes,
 * and each keeps the block alive in which it was read.
 */
export class GrowingBytes {
  #bytes = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#bytes.length;
  }

  append(chunk: Uint8Array): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#bytes.length) this.#grow(Math.max(MIN_CAPACITY, 2 * this.#bytes.length, needed));
    this.#bytes.set(chunk, this.#length);
    this.#length = needed;
  }

  /** All that was appended, without a copy; what is appended next begins again. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = NOTHING;
    this.#length = 0;
    return taken;
  }

  #grow(capacity: number): void {
    // Slow: out of the pool, a few bytes would keep a whole block of it alive.
    const grown = Buffer.allocUnsafeSlow(capacity);
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
