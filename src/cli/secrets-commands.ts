import type { Command } from 'commander';
import { recordServerChange } from '../admin/audit/audit-trail.ts';
import { type Config, readConfig } from '../config/config.ts';
import { systemClock } from '../domain/time.ts';
import type { Database } from '../store/db/database.ts';
import {
  addEncryptionKey,
  dropPepper,
  finishEncryptionKey,
  type ResealResult,
  type RotationResult,
  rotateEncryptionKey,
  rotatePepper,
} from '../store/secrets/rotate-secrets.ts';
import { loadSecrets, readSecretNeeds, type SecretNeed } from '../store/secrets/secrets.ts';
import { assertTakesSecrets, readServing, reloadServer } from '../store/secrets/serving.ts';
import { print, printJson, printTable, warn } from './terminal/output.ts';
import { alsoWhileServed, checked, type Environment, secretsOf, withDatabase } from './workspace.ts';

interface Options {
  readonly json?: true;
}

/** Which secrets are missing is what these commands show, and mend. */
const MISSING = ['pepper', 'encryption key'] as const;

/** Changes secrets; a server that runs has to take them. What does not fit is refused before anything is opened. */
function changing<T>(
  env: Environment,
  change: (db: Database, config: Config, isServed: boolean) => T | Promise<T>,
): Promise<T> {
  checked(readConfig(env), ...MISSING);
  return alsoWhileServed(env, (config, isServed) =>
    withDatabase(
      config,
      (db) => {
        if (isServed) assertTakesSecrets(config.dataDir, secretsOf(config));
        return change(db, config, isServed);
      },
      ...MISSING,
    ),
  );
}

const PEPPER_HELP = `
Keys are hashed under the current pepper. Those under an older one go on working and are hashed again when they are next used
(platform keys, which are not used here, stay: make new ones). \`portcullis secrets list\` shows how many still use it,
\`portcullis secrets drop-pepper\` ends it.

With PEPPER in the environment, put a new one before the old: PEPPER=<new>,<old>.`;

const ENCRYPTION_HELP = `
Every provider key is sealed again, and the older encryption keys are forgotten. Cut off at any moment, nothing is lost: run it
again.

With ENCRYPTION_KEY in the environment, put a new one before the old, ENCRYPTION_KEY=<new>,<old>, run this, and then take the
old one away.`;

/** `portcullis secrets …`. */
export function secretsCommands(program: Command, env: Environment): void {
  const secrets = program.command('secrets').description("List and rotate the server's own secrets.");
  listCommand(secrets, env);
  secrets
    .command('rotate-pepper')
    .description('Hash keys under a new pepper, from their next use on. A running server takes it at once.')
    .option('--json', 'print JSON')
    .addHelpText('after', PEPPER_HELP)
    .action(async ({ json }: Options) => {
      const id = await changing(env, newPepper);
      if (json) printJson({ pepper: { id } });
      else print(`The current pepper is ${id}. Keys move to it as they are used.`);
    });
  dropCommand(secrets, env);
  rotateEncryptionCommand(secrets, env);
}

async function newPepper(db: Database, { dataDir, secrets: given }: Config, isServed: boolean): Promise<string> {
  const record = ({ id, previousId }: RotationResult): void =>
    recordServerChange(db, 'pepper', 'rotate', { before: { id: previousId }, after: { id } }, systemClock.now());
  const { id } = rotatePepper(db, dataDir, given, record);
  if (isServed) await reloadServer(dataDir, ({ peppers }) => peppers[0] === id);
  return id;
}

interface ListedSecret {
  readonly kind: 'pepper' | 'encryption key' | 'signing key';
  readonly id: string;
  readonly status: 'current' | 'accepted' | 'missing';
  /** Present keys that hang on it; null: not counted. */
  readonly keys: number | null;
}

function listCommand(secrets: Command, env: Environment): void {
  secrets
    .command('list')
    .description('List the secrets by id, with the number of keys that use each.')
    .option('--json', 'print JSON')
    .action(async ({ json }: Options) => {
      const config = readConfig(env);
      const needs = await withDatabase(config, (db) => readSecretNeeds(db, systemClock.now()), ...MISSING);
      const { peppers, encryptionKeys, signingKey } = secretsOf(config);
      const listed: ListedSecret[] = [
        ...listKind('pepper', peppers, needs.peppers),
        ...listKind('encryption key', encryptionKeys, needs.encryptionKeys),
        { kind: 'signing key', id: signingKey.id, status: 'current', keys: null },
      ];
      if (json) printJson({ secrets: listed });
      else show(listed);
    });
}

function listKind(
  kind: ListedSecret['kind'],
  accepted: readonly { readonly id: string }[],
  needs: readonly SecretNeed[],
): ListedSecret[] {
  const keysOf = (id: string): number => needs.find((need) => need.id === id)?.count ?? 0;
  const there = accepted.map(({ id }, index): ListedSecret => {
    return { kind, id, status: index === 0 ? 'current' : 'accepted', keys: keysOf(id) };
  });
  const missing = needs.filter(({ id }) => !accepted.some((each) => each.id === id));
  return [...there, ...missing.map(({ id, count }): ListedSecret => ({ kind, id, status: 'missing', keys: count }))];
}

function show(listed: readonly ListedSecret[]): void {
  const rows = listed.map(({ kind, id, status, keys }) => [
    { text: kind },
    { text: id },
    status === 'missing' ? ({ text: status, colour: 'red' } as const) : { text: status },
    { text: keys === null ? '-' : String(keys) },
  ]);
  printTable(['SECRET', 'ID', 'STATUS', 'KEYS'], rows, 'There are no secrets.');
}

function dropCommand(secrets: Command, env: Environment): void {
  secrets
    .command('drop-pepper')
    .argument('<id>', 'as `portcullis secrets list` shows it')
    .description('Stop accepting a pepper. Refused while keys still use it.')
    .option('--force', 'give up the keys that use it, also when it is lost: they can never be used again')
    .option('--json', 'print JSON')
    .action(async (id: string, { force = false, json }: Options & { force?: boolean }) => {
      const lost = await changing(env, (db, config, isServed) => endPepper(db, config, { id, force, isServed }));
      if (json) printJson({ id, deleted: true, lostKeys: lost });
      else print(`Dropped pepper ${id}.${lost === 0 ? '' : ` Keys lost with it: ${lost}.`}`);
    });
}

/** Ends a pepper; returns how many keys were lost with it. */
async function endPepper(
  db: Database,
  { dataDir, secrets: given }: Config,
  { id, force, isServed }: { readonly id: string; readonly force: boolean; readonly isServed: boolean },
): Promise<number> {
  const now = systemClock.now();
  if (isServed && readServing(dataDir).peppers[0] === id) {
    throw new Error(`The running server makes keys under pepper ${id}: reload it (SIGHUP) after the rotation.`);
  }
  const lost = dropPepper(db, dataDir, id, { given, force, now }, () =>
    recordServerChange(db, 'pepper', 'drop', { before: { id }, after: null }, now),
  );
  if (isServed) await reloadServer(dataDir, ({ peppers }) => !peppers.includes(id));
  return lost;
}

function rotateEncryptionCommand(secrets: Command, env: Environment): void {
  secrets
    .command('rotate-encryption-key')
    .description('Seal all provider keys with a new encryption key. A running server takes it at once.')
    .option('--json', 'print JSON')
    .addHelpText('after', ENCRYPTION_HELP)
    .action(async ({ json }: Options) => {
      const { id, resealed, unopened } = await changing(env, newEncryptionKey);
      for (const each of unopened) warn(`${each} cannot be opened by any key: give its token again, or remove it.`);
      if (json) printJson({ encryptionKey: { id }, resealed, unopened });
      else print(`The encryption key is ${id}. Provider keys sealed again: ${resealed}.`);
    });
}

/** A server that runs knows the new key before anything is sealed with it, and forgets the old one last. */
async function rotateUnderServer(
  db: Database,
  { dataDir, secrets: given }: Config,
): Promise<ResealResult & RotationResult> {
  if (given.encryptionKeys.length > 0) {
    const [{ id }] = loadSecrets(dataDir, { create: false, given }).encryptionKeys;
    await reloadServer(dataDir, ({ encryptionKeys }) => encryptionKeys[0] === id);
    return rotateEncryptionKey(db, dataDir, given);
  }
  const rotated = addEncryptionKey(db, dataDir);
  await reloadServer(dataDir, ({ encryptionKeys }) => encryptionKeys[0] === rotated.id);
  const resealed = finishEncryptionKey(db, dataDir);
  await reloadServer(dataDir, ({ encryptionKeys }) => encryptionKeys.length === 1);
  return { ...resealed, ...rotated };
}

/**
 * Rotates the encryption key. The secrets sealed again belong to many organizations: their common log has only the ids of the
 * two keys.
 */
async function newEncryptionKey(
  db: Database,
  config: Config,
  isServed: boolean,
): Promise<ResealResult & RotationResult> {
  const { dataDir, secrets: given } = config;
  const rotated = isServed ? await rotateUnderServer(db, config) : rotateEncryptionKey(db, dataDir, given);
  const change = { before: { id: rotated.previousId }, after: { id: rotated.id } };
  recordServerChange(db, 'encryption_key', 'rotate', change, systemClock.now());
  return rotated;
}
