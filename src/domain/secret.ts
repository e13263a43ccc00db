import { createHmac, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

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

/** What may be shown of a secret later: `pcl_abcd…wxyz`. */
export function maskSecret(secret: string): string {
  const body = secret.indexOf('_') + 1;
  return `${secret.slice(0, body + 4)}…${secret.slice(-4)}`;
}
