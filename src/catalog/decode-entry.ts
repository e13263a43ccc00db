/** A field of a data file that is not as it must be. The files are part of the program, so this is a fault of ours. */
export const dataFault = (place: string): Error => new Error(`catalogue data: wrong value at ${place}`);

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

/** One object of a data file: typed access to its fields, with errors that name the place. */
export class Entry {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #place: string;

  constructor(value: unknown, place: string) {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw dataFault(place);
    this.#fields = { ...value };
    this.#place = place;
  }

  optionalText(key: string): string | undefined {
    return this.#optional(key, (value) => typeof value === 'string');
  }

  optionalFlag(key: string): boolean | undefined {
    return this.#optional(key, (value) => typeof value === 'boolean');
  }

  optionalCount(key: string): number | undefined {
    return this.#optional(key, (value): value is number => Number.isSafeInteger(value));
  }

  optionalTexts(key: string): string[] | undefined {
    return this.#optional(key, isTexts);
  }

  text(key: string): string {
    return this.#required(key, this.optionalText(key));
  }

  texts(key: string): string[] {
    return this.#required(key, this.optionalTexts(key));
  }

  oneOf<T extends string>(key: string, values: readonly T[]): T {
    const text = this.text(key);
    return this.#required(
      key,
      values.find((value) => value === text),
    );
  }

  epochMs(key: string): number {
    const time = Date.parse(this.text(key));
    if (Number.isNaN(time)) throw dataFault(`${this.#place}/${key}`);
    return time;
  }

  entry(key: string): Entry {
    return new Entry(this.#fields[key], `${this.#place}/${key}`);
  }

  list<T>(key: string, decode: (entry: Entry) => T): T[] {
    const value = this.#fields[key];
    if (!Array.isArray(value)) throw dataFault(`${this.#place}/${key}`);
    return value.map((item: unknown, position) => decode(new Entry(item, `${this.#place}/${key}/${position}`)));
  }

  #optional<T>(key: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.#fields[key];
    if (value !== undefined && !is(value)) throw dataFault(`${this.#place}/${key}`);
    return value;
  }

  #required<T>(key: string, value: T | undefined): T {
    if (value === undefined) throw dataFault(`${this.#place}/${key}`);
    return value;
  }
}
