import type { Address } from '../../domain/client-ip.ts';

/** Rows of the ledger in a block. */
export const BLOCK = 4096;

/** What has a cell for each row: a 32-bit code of the value. `model` and `provider` are those that served. */
export type Coded =
  | 'organization'
  | 'key'
  | 'member'
  | 'requestedModel'
  | 'model'
  | 'provider'
  | 'outcome'
  | 'reason'
  | 'request'
  | 'clientRequest';

/** Of the rules that a decision names, and of the caller's groups, a bit for each in both: the first by some bits of its code, the second by others. */
type RuleBits = 'ruleBits' | 'moreRuleBits';
/** Of the caller's address, in the order of addresses: the first 32 bits, and the next. */
type AddressBits = 'addressHigh' | 'addressNext';
/** Milliseconds that the call took, and two; `NONE` where that is not known. Blocks from before there were such cells have none. */
type Took = 'took';
export type CellName = Coded | RuleBits | AddressBits | Took;

/** Rows of the ledger in the order of their numbers, with what they are searched by. */
export interface IndexBlock {
  readonly numbers: Float64Array;
  readonly cells: Readonly<Record<CellName, Int32Array>>;
  /** Numbers of the calls among them that stand far behind the time in their id (call-place.ts). */
  readonly displaced: Float64Array;
}

/** The call is open, so that who serves it is not known yet: may be anything. */
export const UNKNOWN = 0;
/** There is no value. */
export const NONE = 1;

/** How long a call took, as a cell. */
export const tookCell = (ms: number | null): number => (ms === null ? NONE : Math.min(ms, 0x7ffffff0) + 2);

/** FNV-1a, but for the two codes that mean something else. */
export function codeOf(value: string | null): number {
  if (value === null) return NONE;
  let code = 0x811c9dc5;
  for (let index = 0; index < value.length; index += 1) {
    code = Math.imul(code ^ value.charCodeAt(index), 0x01000193);
  }
  return code === UNKNOWN || code === NONE ? -1 : code;
}

export const ruleBit = (code: number): number => 1 << (code & 31);
export const moreRuleBit = (code: number): number => 1 << ((code >>> 5) & 31);

/** The first 32 bits of an address and the next, unsigned; an IPv4 address has no more than the first. */
export function addressBits({ family, value }: Address): readonly [high: number, next: number] {
  if (family === 4) return [Number(value), 0];
  return [Number(value >> 96n), Number((value >> 64n) & 0xffffffffn)];
}

/** A copy: the bytes of a row may begin anywhere, typed arrays may not. */
const copied = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBufferLike =>
  buffer.slice(byteOffset, byteOffset + byteLength);

/** The cells that a row of the index holds. */
export const cellsIn = (bytes: Buffer): Int32Array => new Int32Array(copied(bytes));

/** The numbers of calls that a row of the index holds. */
export const numbersIn = (bytes: Buffer): Float64Array => new Float64Array(copied(bytes));
