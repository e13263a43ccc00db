import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** A secret encrypted with AES-256-GCM under the server's encryption key (src/domain/README.md, "stored secrets"). */
export interface SealedSecret {
  /** Which key it was sealed with. */
  readonly keyId: string;
  /** Nonce (12 bytes), ciphertext, tag (16 bytes), in base64. */
  readonly ciphertext: string;
}

/** An encryption key: 32 bytes, and the id that is stored next to what it seals. */
export interface EncryptionKey {
  readonly id: string;
  readonly key: Buffer;
}

/** Shortest secret of which eight characters may be shown without giving away a good part of it. */
const SHOWABLE_LENGTH = 20;

/** What may be shown of a provider's secret later: `sk-p…wxyz`; of a short one nothing. */
export const maskCredential = (secret: string): string =>
  secret.length < SHOWABLE_LENGTH ? '…' : `${secret.slice(0, 4)}…${secret.slice(-4)}`;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param owner id of the row that holds the secret: it is authenticated, so that a ciphertext cannot be moved to another row */
export function sealSecret(secret: string, owner: string, { id, key }: EncryptionKey): SealedSecret {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(owner));
  const parts = [nonce, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()];
  return { keyId: id, ciphertext: Buffer.concat(parts).toString('base64') };
}

/** @throws Error when it was sealed with none of the keys, for another row, or was altered */
export function openSecret(sealed: SealedSecret, owner: string, ...keys: readonly EncryptionKey[]): string {
  const key = keys.find(({ id }) => id === sealed.keyId)?.key;
  if (key === undefined) throw new Error(`The secret of ${owner} is sealed with another encryption key.`);
  const bytes = Buffer.from(sealed.ciphertext, 'base64');
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error(`The sealed secret of ${owner} is damaged.`);
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES))
    .setAAD(Buffer.from(owner))
    .setAuthTag(bytes.subarray(-TAG_BYTES));
  const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES));
  return Buffer.concat([text, decipher.final()]).toString('utf8');
}
