import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'kysely';
import { writeDurably } from '../db/data-dir.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

/** A 32-byte key, and the id that is stored next to whatever was made with it. */
export interface ServerKey {
  /** First 8 hex digits of the key's SHA-256. */
  readonly id: string;
  readonly key: Buffer;
}

/** Keys of one purpose: the first makes what is new, the others are still accepted. */
export type ServerKeys = readonly [ServerKey, ...ServerKey[]];

/** The server's own secrets. */
export interface ServerSecrets {
  /** Keys of the hash under which secrets are stored. */
  readonly peppers: ServerKeys;
  /** AES-256 keys of provider credentials. */
  readonly encryptionKeys: ServerKeys;
  /** Key of signatures and of the audit chain. */
  readonly signingKey: ServerKey;
}

/** Secrets given by the environment, each of 32 bytes; what is given is not taken from the file. Empty: none are. */
export interface GivenSecrets {
  readonly peppers: readonly Buffer[];
  readonly encryptionKeys: readonly Buffer[];
}

const NOTHING_GIVEN: GivenSecrets = { peppers: [], encryptionKeys: [] };

function serverKey(key: Buffer, name: string): ServerKey {
  if (key.length !== KEY_BYTES) throw new Error(`The ${name} must be ${KEY_BYTES} bytes in base64url.`);
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

const decoded = (text: string): Buffer => Buffer.from(text, 'base64url');

function serverKeys(given: readonly Buffer[], filed: readonly string[], name: string): ServerKeys {
  const [first, ...others] = (given.length > 0 ? given : filed.map(decoded)).map((key) => serverKey(key, name));
  if (first === undefined) throw new Error(`At least one ${name} is needed.`);
  return [first, ...others];
}

/** The secrets of a file, each kind replaced by what is given of it. @throws Error when one is malformed */
export const secretsOf = (file: SecretsFile, given = NOTHING_GIVEN): ServerSecrets => ({
  peppers: serverKeys(given.peppers, file.peppers, 'pepper'),
  encryptionKeys: serverKeys(
    given.encryptionKeys,
    [file.encryptionKey, ...(file.olderEncryptionKeys ?? [])],
    'encryption key',
  ),
  signingKey: serverKey(decoded(file.signingKey), 'signing key'),
});

/**
 * The server's secrets from `DATA_DIR/secrets.json` (mode 0600), each kind replaced by the given ones if there are any. A
 * missing file is made when `create` is set (only `serve` sets it, where there is no database yet), else an error.
 */
export function loadSecrets(dataDir: string, options: { create: boolean; given?: GivenSecrets }): ServerSecrets {
  const path = secretsPath(dataDir);
  if (!options.create && !existsSync(path)) {
    throw new Error(
      `There are no secrets at ${path}: without them no key in the database can be verified. Restore the file.`,
    );
  }
  return secretsOf(existsSync(path) ? readSecretsFile(path) : createSecretsFile(path), options.given);
}

/** Content of `secrets.json`, each key as base64url. */
export interface SecretsFile {
  /** The first hashes new secrets; the others are still accepted. */
  readonly peppers: readonly string[];
  /** Seals provider credentials. */
  readonly encryptionKey: string;
  /** Those that a rotation has not finished with: they still open what they sealed. */
  readonly olderEncryptionKeys?: readonly string[];
  readonly signingKey: string;
}

const KEY_BYTES = 32;

export const newServerKey = (): string => randomBytes(KEY_BYTES).toString('base64url');

export const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json');

/** True for a list of strings. */
export const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((each) => typeof each === 'string');

function isSecretsFile(value: unknown): value is SecretsFile {
  if (typeof value !== 'object' || value === null) return false;
  if (!('peppers' in value && 'encryptionKey' in value && 'signingKey' in value)) return false;
  const { peppers, encryptionKey, signingKey } = value;
  if (typeof encryptionKey !== 'string' || typeof signingKey !== 'string') return false;
  return isTexts(peppers) && (!('olderEncryptionKeys' in value) || isTexts(value.olderEncryptionKeys));
}

/** @throws Error when others can read it, or it is not what we wrote; without a word of what it holds */
export function readSecretsFile(path: string): SecretsFile {
  if (process.platform !== 'win32' && (statSync(path).mode & 0o077) !== 0) {
    throw new Error(`${path} can be read by others: set its mode to 0600.`);
  }
  let secrets: unknown;
  try {
    secrets = JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    throw new Error(`${path} is not JSON.`); // without the cause, which quotes the text
  }
  if (!isSecretsFile(secrets)) throw new Error(`${path} does not hold the server's secrets.`);
  return secrets;
}

export const writeSecretsFile = (path: string, secrets: SecretsFile): void =>
  writeDurably(path, `${JSON.stringify(secrets, null, 2)}\n`);

function createSecretsFile(path: string): SecretsFile {
  const secrets = { peppers: [newServerKey()], encryptionKey: newServerKey(), signingKey: newServerKey() };
  writeSecretsFile(path, secrets);
  return secrets;
}

/** Number of stored items that need one pepper or one encryption key. */
export interface SecretNeed {
  readonly id: string;
  readonly count: number;
}

export interface SecretNeeds {
  /** Keys of all kinds, secrets that were rolled and have not ended, master keys and invitations included, by the pepper that their hash is made with. */
  readonly peppers: readonly SecretNeed[];
  /** Provider keys by the encryption key that they are sealed with. */
  readonly encryptionKeys: readonly SecretNeed[];
}

const countById = (column: 'pepperId' | 'encryptionKeyId') =>
  [sql<string>`${sql.ref(column)}`.as('id'), sql<number>`count(*)`.as('count')] as const;

/**
 * The server's secrets that keys and open invitations of all organizations need at `now` (epoch ms). Deleted ones need
 * none, and playground keys have no secret.
 */
export function readSecretNeeds(db: Pick<Database, 'all'>, now: number): SecretNeeds {
  const keys = build
    .selectFrom('keys')
    .select(countById('pepperId'))
    .where('deletedAt', 'is', null)
    .where('kind', '<>', 'playground')
    .groupBy('pepperId');
  const previousSecrets = build
    .selectFrom('keys')
    .select(['previousPepperId as id', sql<number>`count(*)`.as('count')])
    .where('deletedAt', 'is', null)
    .where('previousSecretEndsAt', '>', now)
    .groupBy('previousPepperId')
    .$narrowType<{ id: string }>();
  const masterKeys = build
    .selectFrom('master_keys')
    .select(countById('pepperId'))
    .where('deletedAt', 'is', null)
    .groupBy('pepperId');
  const invitations = build
    .selectFrom('invitations')
    .select(countById('pepperId'))
    .where('acceptedAt', 'is', null)
    .where('revokedAt', 'is', null)
    .where('expiresAt', '>', now)
    .groupBy('pepperId');
  const providerKeys = build
    .selectFrom('provider_keys')
    .select(countById('encryptionKeyId'))
    .where('deletedAt', 'is', null)
    .groupBy('encryptionKeyId');
  return {
    peppers: added([keys, previousSecrets, masterKeys, invitations].flatMap((query) => db.all(query))),
    encryptionKeys: db.all(providerKeys),
  };
}

function added(needs: readonly SecretNeed[]): SecretNeed[] {
  const counts = new Map<string, number>();
  for (const { id, count } of needs) counts.set(id, (counts.get(id) ?? 0) + count);
  return [...counts].map(([id, count]) => ({ id, count }));
}

interface Accepted {
  readonly peppers: readonly { readonly id: string }[];
  readonly encryptionKeys: readonly { readonly id: string }[];
}

/** Peppers that were dropped: what still needed one was given up. Reads the whole audit log. */
export const listGivenUp = (db: Pick<Database, 'all'>): string[] =>
  db
    .all(build.selectFrom('audit').select('targetId').distinct().where('action', '=', 'pepper.drop'))
    .map(({ targetId: id }) => id);

/** Returns the secrets that are needed and missing. */
export function lackingSecrets(needs: SecretNeeds, accepted: Accepted): SecretNeeds {
  const lacking = (wanted: readonly SecretNeed[], there: Accepted['peppers']): SecretNeed[] =>
    wanted.filter(({ id }) => !there.some((each) => each.id === id));
  return {
    peppers: lacking(needs.peppers, accepted.peppers),
    encryptionKeys: lacking(needs.encryptionKeys, accepted.encryptionKeys),
  };
}

/** Secrets in words; empty: there are none. */
export function inWords({ peppers, encryptionKeys }: SecretNeeds): string[] {
  const words =
    (what: string) =>
    ({ id, count }: SecretNeed) =>
      `${what} ${id} (${count})`;
  return [...peppers.map(words('pepper')), ...encryptionKeys.map(words('encryption key'))];
}

/** The ids that are needed and not there, in words; empty: all are there. */
export const missingSecrets = (needs: SecretNeeds, accepted: Accepted): string[] =>
  inWords(lackingSecrets(needs, accepted));
