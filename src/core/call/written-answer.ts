import type { JsonPieces, LongTexts } from '../../net/long-texts.ts';

/** What a provider said, as the JSON of an object with one field at least, none of them the gateway's: bytes where it is large. */
export type ProviderJson = string | Uint8Array;

/** JSON, in pieces where it is large. */
export type JsonText = string | JsonPieces;

/** An answer, or an event of one, of which a provider's part is neither parsed nor written again. */
export class WrittenAnswer<Ours extends object> {
  readonly ours: Ours;
  readonly #theirs: ProviderJson | undefined;
  readonly #longTexts: LongTexts | undefined;

  /**
   * @param ours fields of the gateway's
   * @param theirs the provider's; undefined: they are in `ours`
   * @param longTexts what stands for long texts in either
   */
  constructor(ours: Ours, theirs: ProviderJson | undefined, longTexts?: LongTexts) {
    this.ours = ours;
    this.#theirs = theirs;
    this.#longTexts = longTexts;
  }

  /** The JSON of one object that has the fields of both. @param ours the gateway's fields as this caller wants them */
  json(ours: object): JsonText {
    const text = JSON.stringify(ours);
    const theirs = this.#theirs;
    if (theirs === undefined) return this.#put(text);
    const head = `${text.slice(0, -1)},`;
    return typeof theirs === 'string' ? this.#put(head + theirs.slice(1)) : [Buffer.from(head), theirs.subarray(1)];
  }

  #put(text: string): JsonText {
    return this.#longTexts === undefined || this.#longTexts.isEmpty ? text : this.#longTexts.putBack(text);
  }
}
