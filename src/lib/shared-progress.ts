/** How far the work of another thread is, and whether it is still wanted: in memory that both see, so that neither waits for the other. */
export class SharedProgress {
  readonly memory: SharedArrayBuffer;
  readonly #numbers: Int32Array;

  /** @param memory of the other side */
  constructor(memory = new SharedArrayBuffer(12)) {
    this.memory = memory;
    this.#numbers = new Int32Array(memory);
  }

  /** @returns whether the other side still wants the work */
  tell(done: number, all: number): boolean {
    Atomics.store(this.#numbers, 0, done);
    Atomics.store(this.#numbers, 1, all);
    return Atomics.load(this.#numbers, 2) === 0;
  }

  /** The numbers of the last `tell`. */
  read(): { readonly done: number; readonly all: number } {
    return { done: Atomics.load(this.#numbers, 0), all: Atomics.load(this.#numbers, 1) };
  }

  /** The work is not wanted any more. */
  stop(): void {
    Atomics.store(this.#numbers, 2, 1);
  }
}
