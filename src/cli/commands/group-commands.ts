import type { Command } from 'commander';
import { createGroup, getGroup } from '../../admin/rules/groups.ts';
import { showGroup, showGroupChange, showGroupDeletion, showGroups } from '../output/group-output.ts';
import { everyGroup, groupId, keyId, memberId } from '../run/references.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, named, orNone } from '../terminal/common-options.ts';
import { UsageError } from '../terminal/usage-error.ts';

interface UpdateOptions extends CommonOptions {
  readonly name?: string;
  readonly description?: string;
}

interface WhoOptions extends CommonOptions {
  readonly member?: readonly string[];
  readonly key?: readonly string[];
  readonly failOnNewAccess?: true;
}

const GROUP_ARGUMENT = ['<group>', 'its id or name'] as const;

const FAIL = ['--fail-on-new-access', 'refuse a change that permits what was not permitted'] as const;

const who = (command: Command): Command =>
  command
    .option('--member <id|e-mail...>', 'members, with all of their keys')
    .option('--key <key...>', 'keys by themselves: id, masked token or description');

/** Loaded only by a command that may widen something, with the policy engine: the others start in a fraction of the time. */
const changes = () => import('../run/run-group-change.ts');

const EXAMPLES = `
Examples:
  $ portcullis groups create contractors --description 'Everyone who is not employed'
  $ portcullis groups add contractors --member anna@example.com bert@example.com --key CI
  $ portcullis rules add --group contractors deny_providers openai
  $ portcullis groups remove contractors --member anna@example.com --fail-on-new-access`;

/** `portcullis groups …`. */
export function groupCommands(program: Command, env: Environment): void {
  const groups = program
    .command('groups')
    .description('Put members and keys into groups, whose rules bind all of them.')
    .addHelpText('after', EXAMPLES);

  common(groups.command('list'))
    .description('List the groups, newest first.')
    .action(async (options: CommonOptions) => {
      showGroups(await inWorkspace(env, 'read', options.org, everyGroup), options);
    });

  common(groups.command('show').argument(...GROUP_ARGUMENT))
    .description('Show a group and who is in it.')
    .action(async (reference: string, options: CommonOptions) => {
      const found = await inWorkspace(env, 'read', options.org, (workspace) =>
        getGroup(workspace.db, workspace.actor, groupId(workspace, reference)),
      );
      showGroup(found, options);
    });

  common(groups.command('create').argument('<name>', 'letters, digits and . _ -'))
    .description('Make a group without anyone in it.')
    .option('--description <text>', 'what it is for')
    .action(async (name: string, options: UpdateOptions) => {
      const body = { ...named({ description: options.description }), name };
      const made = await inWorkspace(env, 'write', options.org, ({ db, actor, now }) =>
        createGroup(db, actor, body, now),
      );
      showGroup(made, options);
    });

  common(groups.command('update').argument(...GROUP_ARGUMENT))
    .description('Change the name or the description of a group.')
    .option('--name <name>', 'new name')
    .option('--description <text>', 'what it is for; "none" removes it')
    .action(async (reference: string, options: UpdateOptions) => {
      const body = named({ name: options.name, description: orNone(options.description) });
      if (Object.keys(body).length === 0) throw new UsageError('Say what to change: --name, --description.');
      const { runGroupChange } = await changes();
      showGroup(await runGroupChange(env, options.org, reference, () => body), options);
    });

  who(common(groups.command('add').argument(...GROUP_ARGUMENT)))
    .description('Put members and keys into a group, from the next call on.')
    .action(async (reference: string, options: WhoOptions) => {
      const { runGroupChange } = await changes();
      showGroup(await runGroupChange(env, options.org, reference, bodyFor('add', options)), options);
    });

  who(common(groups.command('remove').argument(...GROUP_ARGUMENT)))
    .description(
      'Take members and keys out of a group, from the next call on. What the rules newly permit because of it is shown: exactly, credential or not.',
    )
    .option(...FAIL)
    .action(async (reference: string, options: WhoOptions) => {
      const { runGroupChange } = await changes();
      showGroupChange(await runGroupChange(env, options.org, reference, bodyFor('remove', options)), options);
    });

  common(groups.command('delete').argument(...GROUP_ARGUMENT))
    .description('Delete a group with its rules; what that newly permits is shown.')
    .option(...FAIL)
    .action(async (reference: string, options: WhoOptions) => {
      const { runGroupDeletion } = await changes();
      showGroupDeletion(await runGroupDeletion(env, options.org, reference, options.failOnNewAccess === true), options);
    });
}

const bodyFor =
  (how: 'add' | 'remove', { member = [], key = [], failOnNewAccess }: WhoOptions) =>
  (workspace: Workspace): object => {
    if (member.length + key.length === 0) throw new UsageError('Name a member or a key: --member, --key.');
    return {
      ...(member.length === 0 ? {} : { [`${how}Members`]: idsOf(member, (each) => memberId(workspace, each)) }),
      ...(key.length === 0 ? {} : { [`${how}Keys`]: idsOf(key, (each) => keyId(workspace, each)) }),
      ...named({ failOnNewAccess }),
    };
  };

const idsOf = (references: readonly string[], toId: (reference: string) => string): string[] => [
  ...new Set(references.map(toId)),
];
