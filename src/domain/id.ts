import { randomUUIDv7 } from 'node:crypto';

/** Prefixes of the identifiers that Portcullis makes (decisions.md, section 2). */
export type IdPrefix = 'org' | 'proj' | 'mem' | 'key' | 'mkey' | 'rule' | 'call' | 'dec' | 'prov' | 'req';

/** A new identifier: prefix and a UUIDv7 without dashes, so that ids sort by time and inserts stay at the end of an index. */
export const newId = (prefix: IdPrefix): string => `${prefix}_${randomUUIDv7().replaceAll('-', '')}`;
