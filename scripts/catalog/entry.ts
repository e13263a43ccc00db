/** A field of a data file that is not as it must be. The files are part of the program, so this is a fault of ours. */
export const dataFault = (place: string, cause?: unknown): Error =>
  new Error(`catalogue data: wrong value at ${place}`, cause === undefined ? undefined : { cause });

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((item) => typeof item === 'string');

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 3339 in UTC, to the second. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** One object of a data file: typed access to its fields, with errors that name the place. */
export class Entry {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #place: string;

  constructor(value: unknown, place: string) {
    if (!isObject(value)) throw dataFault(place);
    this.#fields = value;
    this.#place = place;
  }

  /** Names of the fields, in the order of the file. */
  keys(): string[] {
    return Object.keys(this.#fields);
  }

  /** Where a field stands, for errors. */
  placeOf(key: string): string {
    return `${this.#place}/${key}`;
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

  optionalTextsOf<T extends string>(key: string, values: readonly T[]): T[] | undefined {
    return this.optionalTexts(key)?.map((text) => this.#required(key, knownOf(text, values)));
  }

  optionalDateTime(key: string): string | undefined {
    const text = this.optionalText(key);
    if (text !== undefined && !(DATE_TIME.test(text) && Date.parse(text) > 0)) throw dataFault(this.placeOf(key));
    return text;
  }

  dateTime(key: string): string {
    return this.#required(key, this.optionalDateTime(key));
  }

  text(key: string): string {
    return this.#required(key, this.optionalText(key));
  }

  count(key: string): number {
    return this.#required(key, this.optionalCount(key));
  }

  texts(key: string): string[] {
    return this.#required(key, this.optionalTexts(key));
  }

  oneOf<T extends string>(key: string, values: readonly T[]): T {
    return this.#required(key, knownOf(this.text(key), values));
  }

  optionalOneOf<T extends string>(key: string, values: readonly T[]): T | undefined {
    return this.optionalText(key) === undefined ? undefined : this.oneOf(key, values);
  }

  textsOf<T extends string>(key: string, values: readonly T[]): T[] {
    return this.#required(key, this.optionalTextsOf(key, values));
  }

  entry(key: string): Entry {
    return new Entry(this.#fields[key], this.placeOf(key));
  }

  optionalEntry(key: string): Entry | undefined {
    return this.#fields[key] === undefined ? undefined : this.entry(key);
  }

  list<T>(key: string, decode: (entry: Entry) => T): T[] {
    return this.#required(key, this.optionalList(key, decode));
  }

  optionalList<T>(key: string, decode: (entry: Entry) => T): T[] | undefined {
    const value = this.#optional(key, (field): field is unknown[] => Array.isArray(field));
    return value?.map((item: unknown, position) => decode(new Entry(item, `${this.placeOf(key)}/${position}`)));
  }

  #optional<T>(key: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.#fields[key];
    if (value !== undefined && !is(value)) throw dataFault(this.placeOf(key));
    return value;
  }

  #required<T>(key: string, value: T | undefined): T {
    if (value === undefined) throw dataFault(this.placeOf(key));
    return value;
  }
}

const knownOf = <T extends string>(text: string, values: readonly T[]): T | undefined =>
  values.find((value) => value === text);
