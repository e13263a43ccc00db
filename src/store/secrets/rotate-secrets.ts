import { closeSync, existsSync, fsyncSync, openSync } from 'node:fs';
import { hashSecret, type Pepper } from '../../domain/id.ts';
import { type EncryptionKey, openSecret, sealSecret } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import {
  type GivenSecrets,
  newServerKey,
  readSecretNeeds,
  readSecretsFile,
  secretsOf,
  secretsPath,
  writeSecretsFile,
} from './secrets.ts';

/**
 * Changes of the server's secrets. A running server has to read them again: the caller sees to that, or holds the lock of the data
 * directory, so that none runs. Commands wait for each other at the write lock of the database.
 */

/** By their ids: the secret that is current now, and the one before it. */
export interface RotationResult {
  readonly id: string;
  readonly previousId: string;
}

/**
 * Makes a new pepper the current one; the others are accepted as before.
 * @param record notes it in the database, in the transaction that ends with the new file: there is neither without the other
 */
export function rotatePepper(
  db: Database,
  dataDir: string,
  { peppers: given }: GivenSecrets,
  record: (rotated: RotationResult) => void,
): RotationResult {
  if (given.length > 0) {
    throw new Error(
      'PEPPER is given by the environment: put a new one before it, as PEPPER=<new>,<old>, and start or reload the server.',
    );
  }
  const path = secretsPath(dataDir);
  return db.transaction(() => {
    const file = readSecretsFile(path);
    const changed = { ...file, peppers: [newServerKey(), ...file.peppers] };
    const rotated = { id: secretsOf(changed).peppers[0].id, previousId: secretsOf(file).peppers[0].id };
    record(rotated);
    writeSecretsFile(path, changed);
    return rotated;
  });
}

/**
 * Accepts a pepper no longer; one that is lost is given up. @throws Error when it is the current one, unknown, given by the
 * environment, or keys use it and `force` is not set: they can never be used again. Returns how many did.
 * @param record as for `rotatePepper`
 */
export function dropPepper(
  db: Database,
  dataDir: string,
  id: string,
  { given, force, now }: { readonly given: GivenSecrets; readonly force: boolean; readonly now: number },
  record: () => void,
): number {
  const path = secretsPath(dataDir);
  const file = readSecretsFile(path);
  const isLost = countOn(db, id, now) > 0 && !secretsOf(file, given).peppers.some((pepper) => pepper.id === id);
  const at = secretsOf(file).peppers.findIndex((pepper) => pepper.id === id);
  if (!isLost) assertDroppable(id, at, given);
  flushToDisk(db); // Or a loss of power could bring keys back to it.
  // While the write lock is held nobody makes a key under it unseen.
  return db.transaction(() => {
    const count = countOn(db, id, now);
    if (count > 0 && !force) {
      throw new Error(
        `Pepper ${id} is still in use by keys: ${count}. A key moves to the current pepper when it is next used. --force gives these keys up.`,
      );
    }
    record();
    if (!isLost) writeSecretsFile(path, { ...file, peppers: file.peppers.toSpliced(at, 1) });
    return count;
  });
}

const countOn = (db: Database, pepperId: string, now: number): number =>
  readSecretNeeds(db, now).peppers.find(({ id }) => id === pepperId)?.count ?? 0;

/** @param at its place among those of the file; -1: it is not there */
function assertDroppable(id: string, at: number, { peppers: given }: GivenSecrets): void {
  if (given.length > 0) throw new Error('PEPPER is given by the environment: take the pepper out of that list.');
  if (at === -1) throw new Error(`There is no pepper ${id}.`);
  if (at === 0) throw new Error(`${id} is the current pepper: rotate it first.`);
}
/**
 * Seals all provider keys with a new encryption key, and forgets the others. In this order, so that whenever it is cut off
 * every secret can still be opened: the file holds both keys, the database is on disk, the file holds the new one alone. Given
 * by the environment, the first of ENCRYPTION_KEY is the new one.
 */
export function rotateEncryptionKey(db: Database, dataDir: string, given: GivenSecrets): ResealResult & RotationResult {
  if (given.encryptionKeys.length > 0) return resealUnderGiven(db, dataDir, given);
  const rotated = addEncryptionKey(db, dataDir);
  return { ...finishEncryptionKey(db, dataDir), ...rotated };
}

/** The first part: a new encryption key, next to the others. */
export function addEncryptionKey(db: Database, dataDir: string): RotationResult {
  const path = secretsPath(dataDir);
  return db.transaction(() => {
    const before = readSecretsFile(path);
    const { encryptionKey, olderEncryptionKeys = [], ...file } = before;
    const both = {
      ...file,
      encryptionKey: newServerKey(),
      olderEncryptionKeys: [encryptionKey, ...olderEncryptionKeys],
    };
    writeSecretsFile(path, both);
    return { id: secretsOf(both).encryptionKeys[0].id, previousId: secretsOf(before).encryptionKeys[0].id };
  });
}

/** The second part: all provider keys are sealed with the new key, and the others are forgotten. */
export function finishEncryptionKey(db: Database, dataDir: string): ResealResult {
  const path = secretsPath(dataDir);
  const file = readSecretsFile(path);
  const resealed = resealProviderKeys(db, secretsOf(file).encryptionKeys);
  flushToDisk(db);
  const { olderEncryptionKeys: _, ...rest } = file;
  writeSecretsFile(path, rest);
  return resealed;
}

function resealUnderGiven(db: Database, dataDir: string, given: GivenSecrets): ResealResult & RotationResult {
  const { encryptionKeys } = secretsOf(readSecretsFile(secretsPath(dataDir)), given);
  const [current, previous] = encryptionKeys;
  if (previous === undefined) {
    throw new Error(
      'ENCRYPTION_KEY is given by the environment: put a new one before it, as ENCRYPTION_KEY=<new>,<old>, and run this again.',
    );
  }
  return { ...resealProviderKeys(db, encryptionKeys), id: current.id, previousId: previous.id };
}

/** Makes what was committed survive the loss of power, whatever the connection's durability. */
function flushToDisk({ connection }: Database): void {
  for (const file of [connection.name, `${connection.name}-wal`]) {
    if (!existsSync(file)) continue;
    const descriptor = openSync(file, 'r+');
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
  }
}

export interface ResealResult {
  readonly resealed: number;
  /** Ids of provider keys that no key opens: they are left as they are. */
  readonly unopened: readonly string[];
}

/** Seals the secrets of all present provider keys with the first key, in one transaction. */
export function resealProviderKeys(db: Database, keys: readonly [EncryptionKey, ...EncryptionKey[]]): ResealResult {
  return db.transaction(() => {
    const rows = db.all(
      build
        .selectFrom('provider_keys')
        .select(['id', 'organizationId', 'ciphertext', 'encryptionKeyId'])
        .where('deletedAt', 'is', null)
        .where('encryptionKeyId', '<>', keys[0].id),
    );
    const unopened: string[] = [];
    for (const { id, organizationId, ciphertext, encryptionKeyId: keyId } of rows) {
      const secret = tryOpen(() => openSecret({ keyId, ciphertext }, id, ...keys));
      if (secret === undefined) {
        unopened.push(id);
        continue;
      }
      const sealed = sealSecret(secret, id, keys[0]);
      db.run(
        build
          .updateTable('provider_keys')
          .set({ ciphertext: sealed.ciphertext, encryptionKeyId: sealed.keyId })
          .where('organizationId', '=', organizationId)
          .where('id', '=', id),
      );
    }
    return { resealed: rows.length - unopened.length, unopened };
  });
}

function tryOpen(open: () => string): string | undefined {
  try {
    return open();
  } catch {
    return undefined;
  }
}

/** A key whose secret was shown, and is stored under an older pepper. */
interface OutdatedHash {
  readonly table: 'keys' | 'master_keys';
  readonly organizationId: string;
  readonly id: string;
  readonly secretHash: string;
}

/**
 * Stores the hash of a key's secret under another pepper. Only who shows the secret makes that possible, so that a pepper is
 * rotated as keys are used. Nothing happens when the key has another secret by now.
 */
export function rehash(
  db: Database,
  { table, organizationId, id, secretHash }: OutdatedHash,
  secret: string,
  pepper: Pepper,
): void {
  db.run(
    build
      .updateTable(table)
      .set({ secretHash: hashSecret(secret, pepper), pepperId: pepper.id })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('secretHash', '=', secretHash),
  );
}
