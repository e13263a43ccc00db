import { createHash, randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** A 32-byte key, and the id that is stored beside whatever was made with it. */
export interface ServerKey {
  /** First 8 hex digits of the key's SHA-256. */
  readonly id: string;
  readonly key: Buffer;
}

/** The server's own secrets. The first pepper hashes new secrets; the others are still accepted. */
export interface ServerSecrets {
  readonly peppers: readonly [ServerKey, ...ServerKey[]];
  /** AES-256 key of provider credentials. */
  readonly encryptionKey: ServerKey;
  /** Key of signatures and of the audit chain. */
  readonly signingKey: ServerKey;
}

/** Secrets given by the environment, each of 32 bytes; what is given is not taken from the file. */
export interface GivenSecrets {
  readonly pepper: Buffer | undefined;
  readonly encryptionKey: Buffer | undefined;
}

interface SecretsFile {
  readonly peppers: readonly string[];
  readonly encryptionKey: string;
  readonly signingKey: string;
}

const KEY_BYTES = 32;

function serverKey(key: Buffer, name: string): ServerKey {
  if (key.length !== KEY_BYTES) throw new Error(`The ${name} must be ${KEY_BYTES} bytes in base64url.`);
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 8), key };
}

const decoded = (text: string): Buffer => Buffer.from(text, 'base64url');

function isSecretsFile(value: unknown): value is SecretsFile {
  if (typeof value !== 'object' || value === null) return false;
  if (!('peppers' in value && 'encryptionKey' in value && 'signingKey' in value)) return false;
  const { peppers, encryptionKey, signingKey } = value;
  if (typeof encryptionKey !== 'string' || typeof signingKey !== 'string' || !Array.isArray(peppers)) return false;
  return peppers.every((pepper) => typeof pepper === 'string');
}

/** Written beside its place and moved there, so that a crash leaves either no file or a whole one. */
function createFile(path: string): SecretsFile {
  const random = () => randomBytes(KEY_BYTES).toString('base64url');
  const secrets = { peppers: [random()], encryptionKey: random(), signingKey: random() };
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeSync(file, `${JSON.stringify(secrets, null, 2)}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  return secrets;
}

function readFile(path: string): SecretsFile {
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

/**
 * The server's secrets from `DATA_DIR/secrets.json` (mode 0600), each replaced by the given one if there is one. A missing file
 * is made when `create` is set (only `serve` sets it, where there is no database yet), else an error.
 */
export function loadSecrets(dataDir: string, options: { create: boolean; given?: GivenSecrets }): ServerSecrets {
  const path = join(dataDir, 'secrets.json');
  if (!options.create && !existsSync(path)) {
    throw new Error(
      `There are no secrets at ${path}: without them no key in the database can be verified. Restore the file.`,
    );
  }
  const file = existsSync(path) ? readFile(path) : createFile(path);
  const { pepper: givenPepper, encryptionKey = decoded(file.encryptionKey) } = options.given ?? {};
  const peppers = givenPepper === undefined ? file.peppers.map(decoded) : [givenPepper];
  const [pepper, ...olderPeppers] = peppers.map((key) => serverKey(key, 'pepper'));
  if (pepper === undefined) throw new Error('At least one pepper is needed.');
  return {
    peppers: [pepper, ...olderPeppers],
    encryptionKey: serverKey(encryptionKey, 'encryption key'),
    signingKey: serverKey(decoded(file.signingKey), 'signing key'),
  };
}
