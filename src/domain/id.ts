import { randomUUIDv7 } from 'node:crypto';

/** Prefixes of the identifiers that Portcullis makes (decisions.md, section 2; custom models and provider keys beside them). */
export type IdPrefix =
  | 'org'
  | 'proj'
  | 'mem'
  | 'key'
  | 'mkey'
  | 'rule'
  | 'call'
  | 'dec'
  | 'prov'
  | 'model'
  | 'pkey'
  | 'aud'
  | 'inv'
  | 'req';

/** The last id made: its first digits, and its last eight as a number. */
let head = '';
let tail = 0;

const TAIL_DIGITS = 8;
const TAILS = 2 ** 32;

/**
 * A new identifier: prefix and a UUIDv7 without dashes. Ids of one process sort strictly in the order in which they were made,
 * so that lists are stable and inserts stay at the end of an index: one of the same millisecond that would sort before the last
 * one is the last one's successor.
 */
export function newId(prefix: IdPrefix): string {
  const uuid = randomUUIDv7();
  const newHead = uuid.slice(0, 8) + uuid.slice(9, 13) + uuid.slice(14, 18) + uuid.slice(19, 23) + uuid.slice(24, 28);
  if (newHead > head) {
    head = newHead;
    tail = Number.parseInt(uuid.slice(28), 16);
  } else {
    tail += 1;
    if (tail === TAILS) {
      head = (BigInt(`0x${head}`) + 1n).toString(16).padStart(head.length, '0');
      tail = 0;
    }
  }
  return `${prefix}_${head}${tail.toString(16).padStart(TAIL_DIGITS, '0')}`;
}

/** Where the ids made at or after a time begin, and those made before it end, in the order of ids; `time` in epoch ms. */
export const idsFrom = (prefix: IdPrefix, time: number): string =>
  `${prefix}_${Math.max(0, time).toString(16).padStart(12, '0').padEnd(32, '0')}`;
