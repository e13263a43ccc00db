import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

/**
 * Characters of a password. Ten are out of reach for guessing in ten attempts each quarter of an hour, and for most who steal the
 * hashes; 128 hold any sentence, and what a manager makes.
 */
export const PASSWORD_LENGTH = { min: 10, max: 128 } as const;

/** The form in which a password is hashed: the same characters typed on another system may come in other code points. */
const normalized = (password: string): string => password.normalize('NFKC');

/** What is wrong with a password that someone chose, in a sentence; undefined: nothing. */
export function passwordFault(password: string, email: string): string | undefined {
  const text = normalized(password);
  const { length } = [...text];
  if (length < PASSWORD_LENGTH.min) return `Use at least ${PASSWORD_LENGTH.min} characters.`;
  if (length > PASSWORD_LENGTH.max) return `Use at most ${PASSWORD_LENGTH.max} characters.`;
  if (text.toLowerCase() === email.toLowerCase()) return 'Your e-mail address cannot be your password.';
  return undefined;
}

/** Of new hashes: what OWASP asks of argon2id at least. Memory in KiB. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const TAG_BYTES = 32;

interface Hash {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly nonce: Buffer;
  readonly tag: Buffer;
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,6}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

const written = ({ memory, passes, parallelism, nonce, tag }: Hash): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;

function parsed(text: string): Hash {
  const [, memory, passes, parallelism, nonce, tag] = PHC.exec(text) ?? [];
  if (nonce === undefined || tag === undefined) throw new Error('A stored password hash is not in the PHC format.');
  return {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(nonce, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
}

const derive = promisify(argon2);

/** On a thread of Node's pool, with the memory that the hash names. */
const tagOf = (password: string, { memory, passes, parallelism, nonce }: Omit<Hash, 'tag'>, tagLength: number) =>
  derive('argon2id', { message: normalized(password), nonce, memory, passes, parallelism, tagLength });

/** A salted hash, as PHC text. */
export async function hashPassword(password: string): Promise<string> {
  const shape = { ...COST, nonce: randomBytes(SALT_BYTES) };
  return written({ ...shape, tag: await tagOf(password, shape, TAG_BYTES) });
}

/** Fits no password, and takes as long to find out. */
export const DUMMY_HASH = written({ ...COST, nonce: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(TAG_BYTES) });

export async function fitsPassword(password: string, hash: string): Promise<boolean> {
  const wanted = parsed(hash);
  return timingSafeEqual(await tagOf(password, wanted, wanted.tag.length), wanted.tag);
}
