import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { createSecretsFile, KEY_BYTES, readSecretsFile, type SecretsFile, secretsPath } from './secrets-file.ts';

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
