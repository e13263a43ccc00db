/** A first piece up to this size is kept as it came: most bodies have no second one. */
const KEPT_AS_IT_CAME = 64 * 1024;

const EMPTY = Buffer.alloc(0);

/** Bytes that come in pieces, in one buffer whatever their size: a million pieces of one byte take a megabyte, not a hundred. */
export class GrowingBytes {
  #bytes: Buffer = EMPTY;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory that it takes; at most twice its length. */
  get capacity(): number {
    return this.#bytes.length;
  }

  append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (this.#length === 0 && needed <= KEPT_AS_IT_CAME && this.#bytes.length === 0) {
      this.#bytes = chunk; // It is full, so that nothing is ever written into it.
    } else {
      if (needed > this.#bytes.length) this.#grow(needed);
      this.#bytes.set(chunk, this.#length);
    }
    this.#length = needed;
  }

  /** What was gathered; nothing is left here. Above 64 KiB no one else has its memory: it can be transferred to a thread. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = EMPTY;
    this.#length = 0;
    return taken;
  }

  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
