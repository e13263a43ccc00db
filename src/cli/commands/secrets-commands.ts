import type { Command } from 'commander';
import { recordServerChange } from '../../admin/audit/server-changes.ts';
import { type Config, readConfig } from '../../config/config.ts';
import { systemClock } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import type { Resealed } from '../../store/secrets/reseal.ts';
import { dropPepper, type Rotated, rotateEncryptionKey, rotatePepper } from '../../store/secrets/rotate-secrets.ts';
import { readSecretNeeds, type SecretNeed } from '../../store/secrets/secret-needs.ts';
import { whileNobodyServes, withDatabase } from '../run/stopped-server.ts';
import { checked, type Environment, secretsOf } from '../run/workspace.ts';
import { print, printJson, printTable, warn } from '../terminal/output.ts';

interface Options {
  readonly json?: true;
}

/** Which secrets are missing is what these commands show, and mend. */
const MISSING = ['pepper', 'encryption key'] as const;

/** Changes secrets while no server runs. What does not fit is refused before anything is opened. */
function changing<T>(env: Environment, change: (db: Database, config: Config) => T): Promise<T> {
  checked(readConfig(env), ...MISSING);
  return whileNobodyServes(env, (config) => withDatabase(config, (db) => change(db, config), ...MISSING));
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
    .description('Hash keys under a new pepper, from their next use on. The server must be stopped.')
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

function newPepper(db: Database, { dataDir, secrets: given }: Config): string {
  const record = ({ id, previousId }: Rotated): void =>
    recordServerChange(db, 'pepper', 'rotate', { before: { id: previousId }, after: { id } }, systemClock.now());
  return rotatePepper(db, dataDir, given, record).id;
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
    .description('Stop accepting a pepper. Refused while keys still use it. The server must be stopped.')
    .option('--force', 'give up the keys that use it, also when it is lost: they can never be used again')
    .option('--json', 'print JSON')
    .action(async (id: string, { force = false, json }: Options & { force?: boolean }) => {
      const lost = await changing(env, (db, config) => endPepper(db, config, id, force));
      if (json) printJson({ id, deleted: true, lostKeys: lost });
      else print(`Dropped pepper ${id}.${lost === 0 ? '' : ` Keys lost with it: ${lost}.`}`);
    });
}

/** How many keys were lost with it. */
function endPepper(db: Database, { dataDir, secrets: given }: Config, id: string, force: boolean): number {
  const now = systemClock.now();
  return dropPepper(db, dataDir, id, { given, force, now }, () =>
    recordServerChange(db, 'pepper', 'drop', { before: { id }, after: null }, now),
  );
}

function rotateEncryptionCommand(secrets: Command, env: Environment): void {
  secrets
    .command('rotate-encryption-key')
    .description('Seal all provider keys with a new encryption key. The server must be stopped.')
    .option('--json', 'print JSON')
    .addHelpText('after', ENCRYPTION_HELP)
    .action(async ({ json }: Options) => {
      const { id, resealed, unopened } = await changing(env, newEncryptionKey);
      for (const each of unopened) warn(`${each} cannot be opened by any key: give its token again, or remove it.`);
      if (json) printJson({ encryptionKey: { id }, resealed, unopened });
      else print(`The encryption key is ${id}. Provider keys sealed again: ${resealed}.`);
    });
}

/** What is sealed again belongs to many organizations: their common log has the ids of the two keys, and nothing of that. */
function newEncryptionKey(db: Database, { dataDir, secrets: given }: Config): Resealed & Rotated {
  const rotated = rotateEncryptionKey(db, dataDir, given);
  const change = { before: { id: rotated.previousId }, after: { id: rotated.id } };
  recordServerChange(db, 'encryption_key', 'rotate', change, systemClock.now());
  return rotated;
}
