import { randomUUIDv7 } from 'node:crypto';

/** Prefixes of the identifiers that Portcullis makes (src/domain/README.md, "identifiers"; custom models and provider keys too). */
export type IdPrefix =
  | 'org'
  | 'proj'
  | 'mem'
  | 'key'
  | 'mkey'
  | 'rule'
  | 'grp'
  | 'call'
  | 'dec'
  | 'prov'
  | 'model'
  | 'pkey'
  | 'tags'
  | 'alias'
  | 'aud'
  | 'inv'
  | 'sess'
  | 'link'
  | 'pass'
  | 'req';

/** Digits of the tail that is counted up, and its end. */
const TAIL = 8;
const TAIL_END = 2 ** 32;

/** Of the last id: its head, which begins with the millisecond, and its tail. */
let head = '';
let tail = 0;

const millisecondOf = (hex: string): number => Number.parseInt(hex.slice(0, 12), 16);
let millisecond = 0;

/** A head of this millisecond; if there was one already, or the clock went back, the one after the last, for a tail that has ended. */
function begin(): void {
  const hex = randomUUIDv7().replaceAll('-', '');
  const isLater = millisecondOf(hex) > millisecond;
  head = isLater ? hex.slice(0, -TAIL) : (BigInt(`0x${head}`) + 1n).toString(16).padStart(head.length, '0');
  tail = isLater ? Number.parseInt(hex.slice(-TAIL), 16) : 0;
  millisecond = millisecondOf(head);
}

/**
 * A new identifier: prefix and a UUIDv7 without dashes, one higher than the last of the same millisecond. Ids of one process sort
 * strictly in the order in which they were made, so that lists are stable and inserts stay at the end of an index.
 */
export function newId(prefix: IdPrefix): string {
  tail += 1;
  if (tail === TAIL_END || Date.now() > millisecond) begin();
  return `${prefix}_${head}${tail.toString(16).padStart(TAIL, '0')}`;
}

const tailOf = (id: string): string => id.slice(id.indexOf('_') + 1);

/** An id like another one but for what it stands for: a call and its decision share theirs. */
export const idLike = (id: string, prefix: IdPrefix): string => `${prefix}_${tailOf(id)}`;

/** The 16 bytes of an id without its prefix. */
export const bytesOfId = (id: string): Buffer => Buffer.from(tailOf(id), 'hex');

/** The id that has these bytes. */
export const idOfBytes = (bytes: Uint8Array, prefix: IdPrefix): string =>
  `${prefix}_${Buffer.from(bytes).toString('hex')}`;

/** An id with the name of what it stands for, where it has one: `key_1 (ci)`. */
export const withName = (id: string, name: string | null | undefined): string => (name ? `${id} (${name})` : id);

/** When an id was made, in epoch ms. */
export const timeOfId = (id: string): number => Number.parseInt(tailOf(id).slice(0, 12), 16);

/** Where the ids made at or after a time begin, and those made before it end, in the order of ids; `time` in epoch ms. */
export const idsFrom = (prefix: IdPrefix, time: number): string =>
  `${prefix}_${Math.max(0, time).toString(16).padStart(12, '0').padEnd(32, '0')}`;
