/** The producer of a queue: told when to wait, when to go on, and that nobody reads any more. */
export interface ChunkSource {
  pause(): void;
  resume(): void;
  cancel(): void;
}

const HIGH_WATER_BYTES = 64 * 1024;
/** What a chunk takes next to its bytes: it is a view of a larger buffer. */
const CHUNK_OVERHEAD_BYTES = 256;

interface Waiter {
  resolve(result: IteratorResult<Buffer, undefined>): void;
  reject(error: Error): void;
}

/**
 * Chunks between a producer that pushes and one consumer that pulls, bounded by back-pressure. Leaving the loop early
 * (`break`, `return`, a throw) cancels the producer.
 */
export class ChunkQueue implements AsyncIterableIterator<Buffer, undefined> {
  readonly #source: ChunkSource;
  #chunks: Buffer[] = [];
  /** Memory of what is queued and of what the reader has in hand. */
  #bytes = 0;
  #inHand = 0;
  #paused = false;
  #ended = false;
  #error: Error | undefined;
  #waiter: Waiter | undefined;

  constructor(source: ChunkSource) {
    this.#source = source;
  }

  push(chunk: Buffer): void {
    if (this.#ended) return;
    const waiter = this.#waiter;
    const size = chunk.length + CHUNK_OVERHEAD_BYTES;
    this.#bytes += size;
    if (waiter !== undefined) {
      this.#waiter = undefined;
      this.#inHand = size;
      waiter.resolve({ done: false, value: chunk });
    } else {
      this.#chunks.push(chunk);
    }
    if (!this.#paused && this.#bytes >= HIGH_WATER_BYTES) {
      this.#paused = true;
      this.#source.pause();
    }
  }

  /** No more chunks; with an error, the reader gets it after what is queued. */
  end(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    this.#waiter = undefined;
    if (error === undefined) {
      waiter.resolve({ done: true, value: undefined });
    } else {
      this.#error = undefined;
      waiter.reject(error);
    }
  }

  /** Asking for the next chunk means being done with the one before. */
  next(): Promise<IteratorResult<Buffer, undefined>> {
    this.#bytes -= this.#inHand;
    const value = this.#chunks.shift();
    this.#inHand = value === undefined ? 0 : value.length + CHUNK_OVERHEAD_BYTES;
    if (value !== undefined) return Promise.resolve({ done: false, value });
    if (this.#error !== undefined) {
      const error = this.#error;
      this.#error = undefined;
      return Promise.reject(error);
    }
    if (this.#ended) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#resume();
    });
  }

  /** Drops what is queued and what still comes; the producer runs on to its end. */
  drain(): void {
    this.#chunks = [];
    this.end();
    this.#resume();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#source.resume();
  }

  return(): Promise<IteratorResult<Buffer, undefined>> {
    this.#chunks = [];
    this.#error = undefined;
    if (!this.#ended) {
      this.end();
      this.#source.cancel();
    }
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }
}
