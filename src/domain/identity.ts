import { argon2, createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { LRUCache } from 'lru-cache';
import type { Clock } from './time.ts';

/**
 * Characters of a password. Ten are out of reach for guessing in ten attempts each quarter of an hour, and for most who steal the
 * hashes; 128 hold any sentence, and what a manager makes.
 */
export const PASSWORD_LENGTH = { min: 10, max: 128 } as const;

/** The form in which a password is hashed: the same characters typed on another system may come in other code points. */
const normalized = (password: string): string => password.normalize('NFKC');

/** Fault of a password that someone chose, in a sentence; undefined: none. */
export function passwordFault(password: string, email: string): string | undefined {
  const text = normalized(password);
  const { length } = [...text];
  if (length < PASSWORD_LENGTH.min) return `Use at least ${PASSWORD_LENGTH.min} characters.`;
  if (length > PASSWORD_LENGTH.max) return `Use at most ${PASSWORD_LENGTH.max} characters.`;
  if (text.toLowerCase() === email.toLowerCase()) return 'Your e-mail address cannot be your password.';
  return undefined;
}

/** Cost of new hashes: the minimum that OWASP asks of argon2id. Memory in KiB. */
const COST = { memory: 19_456, passes: 2, parallelism: 1 } as const;
const SALT_BYTES = 16;
const TAG_BYTES = 32;

interface PasswordHash {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly nonce: Buffer;
  readonly tag: Buffer;
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,6}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

const unpadded = (bytes: Buffer): string => bytes.toString('base64').replaceAll('=', '');

const formatHash = ({ memory, passes, parallelism, nonce, tag }: PasswordHash): string =>
  `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;

function parseHash(text: string): PasswordHash {
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
const hashTag = (
  password: string,
  { memory, passes, parallelism, nonce }: Omit<PasswordHash, 'tag'>,
  tagLength: number,
) => derive('argon2id', { message: normalized(password), nonce, memory, passes, parallelism, tagLength });

/** A salted hash, as PHC text. */
export async function hashPassword(password: string): Promise<string> {
  const shape = { ...COST, nonce: randomBytes(SALT_BYTES) };
  return formatHash({ ...shape, tag: await hashTag(password, shape, TAG_BYTES) });
}

/** Fits no password, and takes as long to find out. */
export const DUMMY_HASH = formatHash({ ...COST, nonce: Buffer.alloc(SALT_BYTES), tag: Buffer.alloc(TAG_BYTES) });

export async function fitsPassword(password: string, hash: string): Promise<boolean> {
  const wanted = parseHash(hash);
  return timingSafeEqual(await hashTag(password, wanted, wanted.tag.length), wanted.tag);
}

/**
 * Values kept for a few minutes, each of which can be taken once; a later value replaces an earlier one. In memory, of bounded
 * number.
 */
export class OneTime<Value> {
  readonly #values: LRUCache<string, { readonly value: Value; readonly until: number }>;
  readonly #clock: Clock;
  readonly #lifeMs: number;

  constructor(clock: Clock, { lifeMs = 300_000, most = 10_000 } = {}) {
    this.#clock = clock;
    this.#lifeMs = lifeMs;
    this.#values = new LRUCache({ max: most });
  }

  put(owner: string, value: Value): void {
    this.#values.set(owner, { value, until: this.#clock.now() + this.#lifeMs });
  }

  take(owner: string): Value | undefined {
    const kept = this.#values.get(owner);
    this.#values.delete(owner);
    return kept === undefined || kept.until <= this.#clock.now() ? undefined : kept.value;
  }
}

const interactionUrl = (base: string, page: string, token: string): string =>
  `${base.replace(/\/$/, '')}/oauth/interaction/${page}?token=${token}`;

/** URL that a browser opens to sign in with the token of a link. @param base address of the gateway, or empty */
export const signInUrl = (base: string, token: string): string => interactionUrl(base, 'link', token);

/** URL that a browser opens to accept an invitation. @param base as above */
export const invitationUrl = (base: string, token: string): string => interactionUrl(base, 'invitation', token);

/** OAuth scope for access to the gateway: the only scope there is. */
export const OAUTH_SCOPE = 'mcp';

/** Paths of the authorization server. */
export const OAUTH_PATHS = {
  authorize: '/oauth/authorize',
  token: '/oauth/token',
  register: '/oauth/register',
  revoke: '/oauth/revoke',
  keys: '/oauth/jwks',
} as const;

/** The resource that tokens are for: the MCP endpoint at an origin. */
export const mcpResource = (origin: string): string => `${origin}/mcp`;

/**
 * In which form tokens, codes and client secrets of the authorization server are stored: SHA-256. They are 256 random bits, so that
 * no pepper is needed.
 */
export const hashOAuthSecret = (secret: string): string => createHash('sha256').update(secret).digest('base64url');

/** The host that describes a client, where its id is the URL of its metadata; those that registered have other ids. */
export const clientHost = (clientId: string): string | undefined => URL.parse(clientId)?.host;
