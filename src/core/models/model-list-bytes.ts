import { hash } from 'node:crypto';
import type { ModelList } from '../../generated/types.ts';

/** A list of models as the bytes that everyone gets, and where in them each model is. */
export class ModelListBytes {
  /** The whole list, as JSON. */
  readonly bytes: Buffer;
  /** Of these bytes, in quotes. */
  readonly etag: string;
  readonly #places = new Map<string, readonly [start: number, end: number]>();

  constructor({ object, data }: ModelList) {
    const head = `{"object":${JSON.stringify(object)},"data":[`;
    const entries = data.map((model) => JSON.stringify(model));
    this.bytes = Buffer.from(`${head}${entries.join(',')}]}`);
    this.etag = `"${hash('sha256', this.bytes, 'base64url')}"`;
    let start = Buffer.byteLength(head);
    const places = entries.map((entry) => {
      const place = [start, start + Buffer.byteLength(entry)] as const;
      start = place[1] + 1;
      return place;
    });
    // An id means its model before an alias does.
    for (const names of [data.map(({ id }) => [id]), data.map(({ aliases = [] }) => aliases)]) {
      for (const [index, place] of places.entries()) this.#name(names[index] ?? [], place);
    }
  }

  /** The model that a name means, an id or an alias, as JSON. */
  find(name: string): Buffer | undefined {
    const place = this.#places.get(name);
    return place === undefined ? undefined : this.bytes.subarray(...place);
  }

  /** Every id and alias. */
  names(): Iterable<string> {
    return this.#places.keys();
  }

  #name(names: readonly string[], place: readonly [number, number]): void {
    for (const name of names) if (!this.#places.has(name)) this.#places.set(name, place);
  }
}
