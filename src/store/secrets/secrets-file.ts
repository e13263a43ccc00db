import { randomBytes } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { writeDurably } from '../db/durable-file.ts';

/** What `secrets.json` holds, each key as base64url. */
export interface SecretsFile {
  /** The first hashes new secrets; the others are still accepted. */
  readonly peppers: readonly string[];
  /** Seals provider credentials. */
  readonly encryptionKey: string;
  /** Those that a rotation has not finished with: they still open what they sealed. */
  readonly olderEncryptionKeys?: readonly string[];
  readonly signingKey: string;
}

export const KEY_BYTES = 32;

export const newServerKey = (): string => randomBytes(KEY_BYTES).toString('base64url');

export const secretsPath = (dataDir: string): string => join(dataDir, 'secrets.json');

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((each) => typeof each === 'string');

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

export function createSecretsFile(path: string): SecretsFile {
  const secrets = { peppers: [newServerKey()], encryptionKey: newServerKey(), signingKey: newServerKey() };
  writeSecretsFile(path, secrets);
  return secrets;
}
