import type { Command } from 'commander';
import { createMasterKey, deleteMasterKey, listMasterKeys } from '../admin/keys/master-keys.ts';
import type { MasterKeyAnswer, MasterKeyRecord } from '../generated/types.ts';
import { showDeletedKey } from './key-commands.ts';
import { everyPage, firstOwner, memberId } from './record-references.ts';
import { type CommonOptions, common, listing, named } from './terminal/options.ts';
import { extra, free, print, printJson, printTable, timeText } from './terminal/output.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface CreateOptions extends CommonOptions {
  readonly description?: string;
  readonly member?: string;
}

/** All master keys, newest first. */
const everyMasterKey = ({ db, actor }: Workspace): MasterKeyRecord[] =>
  everyPage((page) => {
    const { masterKeys: items, nextCursor } = listMasterKeys(db, actor, page);
    return { items, nextCursor };
  });

/** The id of the master key that a person means by an id, a masked token or a description. */
function masterKeyId(workspace: Workspace, reference: string): string {
  const meant = everyMasterKey(workspace).filter(({ id, maskedToken, description }) =>
    [id, maskedToken, description].includes(reference),
  );
  const [key] = meant;
  if (key === undefined) {
    throw new Error(`There is no master key with the id, masked token or description "${reference}".`);
  }
  if (meant.length > 1) throw new Error(`"${reference}" matches several: ${meant.map(({ id }) => id).join(', ')}.`);
  return key.id;
}

function create(workspace: Workspace, { description, member }: CreateOptions): MasterKeyAnswer {
  const { db, actor, now, pepper } = workspace;
  const owner = member === undefined ? firstOwner(workspace) : memberId(workspace, member);
  return createMasterKey(db, actor, named({ description }), { now, pepper: pepper(), memberId: owner });
}

function showNew(answer: MasterKeyAnswer, { json }: CommonOptions): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { id, token } = answer.masterKey;
  print(`${id}\n\n  ${token}\n\nThis token is shown once, now. Keep it.`);
}

function show(masterKeys: readonly MasterKeyRecord[], format: CommonOptions): void {
  if (format.json) {
    printJson({ masterKeys, nextCursor: null });
    return;
  }
  const rows = masterKeys.map((key) => [
    key.description,
    key.id,
    key.createdByEmail,
    timeText(key.lastUsedAt ?? 'never'),
    key.maskedToken,
  ]);
  printTable(
    [free('DESCRIPTION'), 'ID', free('ACTS FOR'), 'LAST USED', ...extra('TOKEN')],
    rows.map((row) => row.map((text) => ({ text }))),
    'There are no master keys.',
    format,
  );
}

/** `portcullis master-keys …`. */
export function masterKeyCommands(program: Command, env: Environment): void {
  const keys = program.command('master-keys').description('Create, list and delete keys of the master API.');

  common(keys.command('create'))
    .description('Create a master key (an organization has at most 10); its token is shown once, now.')
    .requiredOption('--description <text>', 'label of the key')
    .option('--member <id|e-mail>', 'member that the key acts for; default: the first owner')
    .action(async (options: CreateOptions) => {
      showNew(await inWorkspace(env, 'write', options.org, (workspace) => create(workspace, options)), options);
    });

  listing(keys.command('list'))
    .description('List the master keys, newest first. Each has the member that it acts for and its last use.')
    .action(async (options: CommonOptions) => {
      show(await inWorkspace(env, 'read', options.org, everyMasterKey), options);
    });

  common(keys.command('delete').argument('<masterKey>', "the master key's id, masked token or description"))
    .description('Delete a master key for good.')
    .action(async (key: string, options: CommonOptions) => {
      const deleted = await inWorkspace(env, 'write', options.org, (workspace) =>
        deleteMasterKey(workspace.db, workspace.actor, masterKeyId(workspace, key), workspace.now),
      );
      showDeletedKey(deleted, options);
    });
}
