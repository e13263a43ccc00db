import { createHmac, randomBytes, randomUUIDv7 } from 'node:crypto';
import { crc32 } from 'node:zlib';

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

/** Head of the last id, which begins with the millisecond, and its tail. */
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

/**
 * Lower bound, in the order of ids, of the ids made at or after a time, and upper bound of those made before it; `time` in
 * epoch ms.
 */
export const idsFrom = (prefix: IdPrefix, time: number): string =>
  `${prefix}_${Math.max(0, time).toString(16).padStart(12, '0').padEnd(32, '0')}`;

/** Prefixes of the secrets that Portcullis makes: gateway keys, master keys, platform secret keys, invitations, links to sign in. */
export const SECRET_PREFIX = {
  gateway: 'pcl_',
  master: 'pclm_',
  platform: 'sk_',
  invitation: 'pcli_',
  link: 'pcls_',
} as const;

export type SecretKind = keyof typeof SECRET_PREFIX;

/** A key of the keyed hash under which secrets are stored; several may be accepted, so that it can be rotated. */
export interface Pepper {
  readonly id: string;
  readonly key: Buffer;
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 40;
const CHECKSUM_LENGTH = 6;
const BODY = /^[0-9A-Za-z]{46}$/;

function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    // Bytes from 248 on are dropped: 248 is the largest multiple of 62 in a byte, so every character is equally likely.
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += ALPHABET[byte % 62];
  }
  return text;
}

function checksum(text: string): string {
  let rest = crc32(text);
  let encoded = '';
  for (let digit = 0; digit < CHECKSUM_LENGTH; digit++) {
    encoded = ALPHABET.charAt(rest % 62) + encoded;
    rest = Math.floor(rest / 62);
  }
  return encoded;
}

/** A new secret: prefix, 40 random base62 characters (238 bits), 6 characters of checksum over both. */
export function generateSecret(kind: SecretKind): string {
  const text = SECRET_PREFIX[kind] + randomBase62(RANDOM_LENGTH);
  return text + checksum(text);
}

/**
 * Whether `text` has the form and the checksum of a secret of this kind, found without a look-up and with work that does not
 * grow with the text. False means: mistyped or not ours. True says nothing about whether such a key exists.
 */
export function isWellFormedSecret(text: string, kind: SecretKind): boolean {
  const prefix = SECRET_PREFIX[kind];
  if (text.length !== prefix.length + RANDOM_LENGTH + CHECKSUM_LENGTH || !text.startsWith(prefix)) return false;
  if (!BODY.test(text.slice(prefix.length))) return false;
  return text.slice(-CHECKSUM_LENGTH) === checksum(text.slice(0, -CHECKSUM_LENGTH));
}

/** The kind whose secrets begin as this text does, whether it is one of them or not; undefined: it begins as none. */
export function kindOfSecret(text: string): SecretKind | undefined {
  const kinds: readonly SecretKind[] = ['gateway', 'master', 'platform', 'invitation', 'link'];
  return kinds.find((kind) => text.startsWith(SECRET_PREFIX[kind]));
}

/** HMAC-SHA-256 of a secret under a pepper, in hex: the only form in which a key's secret is stored. */
export const hashSecret = (secret: string, pepper: Pepper): string =>
  createHmac('sha256', pepper.key).update(secret).digest('hex');

/** Part of a secret that may be shown later: `pcl_abcd…wxyz`. */
export function maskSecret(secret: string): string {
  const body = secret.indexOf('_') + 1;
  return `${secret.slice(0, body + 4)}…${secret.slice(-4)}`;
}

/** Rows of calls are numbered by the milliseconds in the calls' ids, so many to each: a JS number holds that until the year 2109. */
const PER_MS = 2048;
const DAY_MS = 86_400_000;

/** Boundary between the numbers of calls made at or after a time and those of earlier ones; `time` in epoch ms. */
export const numbersFrom = (time: number): number => Math.max(0, time) * PER_MS;

/** The number of a call, decision or request of this id is not below: others of its millisecond, or a clock that went back, are before it. */
export const earliestNumber = (id: string): number => numbersFrom(timeOfId(id));

/** A call is recorded within so many milliseconds of the time in its id, unless the clock went back while no server ran. */
const NEAR_MS = 60_000;

/** End of the numbers among which the call of this id stands, unless it is displaced. */
export const endOfNear = (id: string): number => numbersFrom(timeOfId(id) + NEAR_MS);

/** When an id was made, by its bytes, in epoch ms. */
const timeOfBytes = (id: Buffer): number => id.readUIntBE(0, 6);

interface Numbered {
  readonly number: number;
  readonly id: Buffer;
}

/** Whether a call stands far behind the time in its id: after the clock went back, rows still follow the last one. */
export const isDisplaced = ({ number, id }: Numbered): boolean => number >= numbersFrom(timeOfBytes(id) + NEAR_MS);

/** When the call of this number was made, in epoch ms. */
export const timeOfNumber = (number: number): number => Math.floor(number / PER_MS);

/** The UTC day on which it was made, counted from 1970. */
export const dayOfNumber = (number: number): number => Math.floor(number / (PER_MS * DAY_MS));
