/** Ids of sections, in the order of the format's history; the last is the count of data segments. */
const TYPES = 1;
const TABLES = 4;
const MEMORIES = 5;
const CODE = 10;
const LAST = 12;
const HEADER_BYTES = 8;
const FUNCTION_TYPE = 0x60;
const FUNCTION_REFERENCES = 0x70;
const WITH_MAXIMUM = 0x01;
const MAX_TABLE = 100_000;
const MAX_FUNCTION_BYTES = 1024 * 1024;

/**
 * Whether a module can take more memory than the one that it is given, whose size is bounded: the engine bounds neither memories of
 * the module's own nor objects, tables and the compilation of huge functions.
 * @param wasm valid: it was compiled. @returns what may not be, as a sentence; null: nothing
 */
export function moduleFault(wasm: Uint8Array): string | null {
  const bytes = new Bytes(wasm, HEADER_BYTES);
  while (bytes.hasMore) {
    const id = bytes.byte();
    const fault = sectionFault(id, bytes.part(bytes.number()));
    if (fault !== null) return fault;
  }
  return null;
}

function sectionFault(id: number, bytes: Bytes): string | null {
  switch (id) {
    case TYPES:
      return typesFault(bytes);
    case TABLES:
      return tablesFault(bytes);
    case MEMORIES:
      return bytes.number() === 0 ? null : 'It has a memory of its own.';
    case CODE:
      return codeFault(bytes);
    default:
      return id > LAST ? `It has a section ${id}, which OPA does not write.` : null;
  }
}

function typesFault(bytes: Bytes): string | null {
  for (let left = bytes.number(); left > 0; left -= 1) {
    if (bytes.byte() !== FUNCTION_TYPE) return 'It has types other than functions.';
    for (let list = 0; list < 2; list += 1) {
      for (let values = bytes.number(); values > 0; values -= 1) {
        if (!isNumberType(bytes.byte())) return 'It has functions of other values than numbers.';
      }
    }
  }
  return null;
}

/** i32, i64, f32, f64. */
const isNumberType = (type: number): boolean => type >= 0x7c && type <= 0x7f;

function tablesFault(bytes: Bytes): string | null {
  for (let left = bytes.number(), isFirst = true; left > 0; left -= 1, isFirst = false) {
    const isPlain = isFirst && bytes.byte() === FUNCTION_REFERENCES && bytes.byte() === WITH_MAXIMUM;
    if (!isPlain) return 'It has other tables than one of functions, with a maximum.';
    bytes.number();
    if (bytes.number() > MAX_TABLE) return `Its table may have more than ${MAX_TABLE} entries.`;
  }
  return null;
}

function codeFault(bytes: Bytes): string | null {
  for (let left = bytes.number(); left > 0; left -= 1) {
    const size = bytes.number();
    if (size > MAX_FUNCTION_BYTES) return `It has a function of more than ${MAX_FUNCTION_BYTES} bytes.`;
    bytes.part(size);
  }
  return null;
}

/** Reads from one place to the next. */
class Bytes {
  readonly #bytes: Uint8Array;
  #place: number;

  constructor(bytes: Uint8Array, place = 0) {
    this.#bytes = bytes;
    this.#place = place;
  }

  get hasMore(): boolean {
    return this.#place < this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.#place];
    if (byte === undefined) throw new RangeError('The module is cut off.');
    this.#place += 1;
    return byte;
  }

  /** An unsigned number, seven bits in each byte. */
  number(): number {
    let [number, factor] = [0, 1];
    for (;;) {
      const byte = this.byte();
      number += (byte & 0x7f) * factor;
      if (byte < 0x80) return number;
      factor *= 128;
    }
  }

  /** The next bytes, by themselves. */
  part(size: number): Bytes {
    const end = this.#place + size;
    const part = new Bytes(this.#bytes.subarray(this.#place, end));
    this.#place = end;
    return part;
  }
}
