/** JSON in pieces that are never put together: bytes of it, one after the other. */
export type JsonPieces = readonly Uint8Array[];

/**
 * Long texts of a stream's events (pictures in base64) by what stands in their places: the serving thread neither reads nor
 * writes them, but puts their bytes back into the JSON that the caller gets. They hold nothing that JSON escapes.
 */
export class LongTexts {
  readonly #texts = new Map<string, Uint8Array>();
  readonly #placed = new Set<string>();
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#texts.size === 0;
  }

  /** What they take. */
  get bytes(): number {
    return this.#bytes;
  }

  add(texts: ReadonlyMap<string, Uint8Array>): void {
    for (const [standIn, bytes] of texts) {
      this.#texts.set(standIn, bytes);
      this.#bytes += bytes.length;
    }
  }

  /** The JSON with each text in its place. */
  putBack(json: string): JsonPieces {
    let pieces: (string | Uint8Array)[] = [json];
    for (const [standIn, bytes] of this.#texts) {
      if (!json.includes(standIn)) continue;
      pieces = pieces.flatMap((piece) => (typeof piece === 'string' ? separated(piece, standIn, bytes) : [piece]));
      this.#placed.add(standIn);
    }
    return pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece) : piece));
  }

  /** All that is said by the events so far is written: texts that have found their places come no more. */
  forgetPlaced(): void {
    for (const standIn of this.#placed) {
      this.#bytes -= this.#texts.get(standIn)?.length ?? 0;
      this.#texts.delete(standIn);
    }
    this.#placed.clear();
  }
}

/** A text's parts with the bytes between them, in place of the separator. */
const separated = (text: string, separator: string, bytes: Uint8Array): (string | Uint8Array)[] =>
  text.split(separator).flatMap((part, place) => (place === 0 ? [part] : [bytes, part]));
