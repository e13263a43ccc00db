import { existsSync, statSync, writeFileSync } from 'node:fs';
import { assertNoDanglingLink } from '../../folders.ts';
import { isKeyOfChain } from '../audit/audit-chain.ts';
import { databasePath, hasDatabase } from '../db/data-dir.ts';
import { draftPath } from '../db/database.ts';
import {
  inWords,
  lackingSecrets,
  listGivenUp,
  readSecretNeeds,
  type SecretNeed,
  type SecretNeeds,
} from '../secrets/secret-needs.ts';
import { type GivenSecrets, loadSecrets, type ServerSecrets } from '../secrets/secrets.ts';
import { secretsPath } from '../secrets/secrets-file.ts';
import { type DatabaseReader, inspectDatabase } from './inspect-database.ts';

/** Secrets that a command can do without, because it is there to find out or to mend that they do not fit. */
export type Dispensable = 'signing key' | 'pepper' | 'encryption key';

export interface DataDirCheck {
  readonly dataDir: string;
  readonly given: GivenSecrets;
  /** Epoch ms. */
  readonly now: number;
  /** Default: none. */
  readonly dispensable?: readonly Dispensable[];
}

/**
 * The server's secrets, once it is certain that they belong to the database next to them, and that it is whole and ours. To be
 * called before anything is opened: it changes nothing. Undefined: there is no database yet.
 * @throws Error that names the file which is wrong, and says what to do
 */
export function checkDataDir(check: DataDirCheck): ServerSecrets | undefined {
  const { dataDir, given } = check;
  const path = databasePath(dataDir);
  for (const file of [path, secretsPath(dataDir)]) assertNoDanglingLink(file);
  if (!hasDatabase(dataDir)) {
    assertNeverThere(path);
    return undefined;
  }
  return inspectDatabase(path, (db) => {
    const secrets = readSecrets(dataDir, given);
    assertSecretsFit(db, secrets, check);
    return secrets;
  });
}

/**
 * Before a server makes a database: notes that by its draft, so that a start that is cut off before there is one can be made again.
 * @throws Error where there are secrets from an earlier start: their database is lost, and in a new one no key of it would be valid
 */
export function beginDatabase(dataDir: string): void {
  const [database, secrets] = [databasePath(dataDir), secretsPath(dataDir)];
  const draft = draftPath(database);
  if (existsSync(draft)) return;
  if (existsSync(secrets)) {
    throw new Error(
      `${database} is missing, and ${secrets} belongs to one: put the database back (portcullis restore <folder>), or move ${secrets} away to begin with a new database, in which no key of the old one is valid.`,
    );
  }
  writeFileSync(draft, '', { mode: 0o600 });
}

/** A log without its database: a new one would take its place, and what was in it would be lost. */
function assertNeverThere(path: string): void {
  const log = `${path}-wal`;
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  throw new Error(
    `${log} is there, and the database that it belongs to is not: put ${path} back, or move the log away.`,
  );
}

function readSecrets(dataDir: string, given: GivenSecrets): ServerSecrets {
  const path = secretsPath(dataDir);
  if (!existsSync(path)) return loadSecrets(dataDir, { create: false, given });
  try {
    return loadSecrets(dataDir, { create: false, given });
  } catch (error) {
    const fault = error instanceof Error ? error.message : String(error);
    const named = fault.includes(path) ? fault : `${path}: ${fault}`;
    throw new Error(`${named} Put back the file that belongs to ${databasePath(dataDir)}.`, { cause: error });
  }
}

/** @throws Error that names what the database needs and the secrets lack, or that they belong to another one */
export function assertSecretsFit(db: DatabaseReader, secrets: ServerSecrets, check: DataDirCheck): void {
  const { dataDir, given, now, dispensable = [] } = check;
  const [database, file] = [databasePath(dataDir), secretsPath(dataDir)];
  if (!dispensable.includes('signing key') && !isKeyOfChain(db, secrets.signingKey.key)) {
    throw new Error(
      `${file} does not belong to ${database}, whose audit log was written under another signing key: put back the file that does.`,
    );
  }
  const lacking = lackingSecrets(readSecretNeeds(db, now), secrets);
  const peppers = dispensable.includes('pepper') ? [] : withoutGivenUp(db, lacking.peppers);
  const encryptionKeys = dispensable.includes('encryption key') ? [] : lacking.encryptionKeys;
  const words = inWords({ peppers, encryptionKeys });
  if (words.length === 0) return;
  throw new Error(
    `${database} needs secrets that are not there: ${words.join(', ')}. ${remedyOf({ peppers, encryptionKeys }, given, file)}`,
  );
}

/** Peppers that an operator dropped by force are missed by nobody. */
function withoutGivenUp(db: DatabaseReader, lacking: readonly SecretNeed[]): readonly SecretNeed[] {
  if (lacking.length === 0) return lacking;
  const givenUp = listGivenUp(db);
  return lacking.filter(({ id }) => !givenUp.includes(id));
}

function remedyOf({ peppers, encryptionKeys }: SecretNeeds, given: GivenSecrets, file: string): string {
  const remedies: string[] = [];
  if (peppers.length > 0) {
    const place = given.peppers.length > 0 ? 'PEPPER' : file;
    remedies.push(
      `Put the pepper back into ${place}, or give up its keys (portcullis secrets drop-pepper <id> --force).`,
    );
  }
  if (encryptionKeys.length > 0) {
    const place = given.encryptionKeys.length > 0 ? 'ENCRYPTION_KEY' : file;
    remedies.push(
      `Put the encryption key back into ${place}, or give its provider keys new tokens (portcullis provider-keys update).`,
    );
  }
  return remedies.join(' ');
}
