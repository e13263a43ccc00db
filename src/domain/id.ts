import { randomUUIDv7 } from 'node:crypto';

/** Prefixes of the identifiers that Portcullis makes (src/domain/README.md, "identifiers"; custom models and provider keys too). */
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
  | 'sess'
  | 'link'
  | 'pass'
  | 'req';

let last = '';

/** The next id after one of the same millisecond: its random tail, one higher. */
const successor = (hex: string): string => (BigInt(`0x${hex}`) + 1n).toString(16).padStart(hex.length, '0');

/**
 * A new identifier: prefix and a UUIDv7 without dashes. Ids of one process sort strictly in the order in which they were made,
 * so that lists are stable and inserts stay at the end of an index.
 */
export function newId(prefix: IdPrefix): string {
  const hex = randomUUIDv7().replaceAll('-', '');
  last = hex > last ? hex : successor(last);
  return `${prefix}_${last}`;
}

/** An id with the name of what it stands for, where it has one: `key_1 (ci)`. */
export const withName = (id: string, name: string | null | undefined): string => (name ? `${id} (${name})` : id);

/** When an id was made, in epoch ms. */
export const timeOfId = (id: string): number =>
  Number.parseInt(id.slice(id.indexOf('_') + 1, id.indexOf('_') + 13), 16);

/** Where the ids made at or after a time begin, and those made before it end, in the order of ids; `time` in epoch ms. */
export const idsFrom = (prefix: IdPrefix, time: number): string =>
  `${prefix}_${Math.max(0, time).toString(16).padStart(12, '0').padEnd(32, '0')}`;
