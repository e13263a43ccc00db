import type { Command } from 'commander';
import {
  changeGroup,
  createGroup,
  deleteGroup,
  getGroup,
  readGroupDeletion,
  readGroupPlan,
} from '../admin/rules/groups.ts';
import { withName } from '../domain/id.ts';
import type { GroupAnswer, GroupChangeAnswer, GroupDeletion, GroupRecord } from '../generated/types.ts';
import { everyGroup, groupId, keyId, memberId } from './record-references.ts';
import { runJudged, showWidening } from './rule-output.ts';
import { type CommonOptions, common, listing, named, orNone } from './terminal/options.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

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

  listing(groups.command('list'))
    .description('List the groups, newest first, with how many members and keys are in them.')
    .action(async (options: CommonOptions) => {
      const all = await inWorkspace(env, 'read', options.org, (workspace) =>
        everyGroup(workspace).map(({ id }) => getGroup(workspace.db, workspace.actor, id).group),
      );
      showGroups(all, options);
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
      showGroup(await runGroupChange(env, options.org, reference, () => body), options);
    });

  who(common(groups.command('add').argument(...GROUP_ARGUMENT)))
    .description('Put members and keys into a group, from the next call on.')
    .action(async (reference: string, options: WhoOptions) => {
      showGroup(await runGroupChange(env, options.org, reference, movesIn('add', options)), options);
    });

  who(common(groups.command('remove').argument(...GROUP_ARGUMENT)))
    .description(
      'Take members and keys out of a group, from the next call on. What the rules newly permit because of it is shown: exactly, credential or not.',
    )
    .option(...FAIL)
    .action(async (reference: string, options: WhoOptions) => {
      const bodyFor = (workspace: Workspace): object => {
        checkIsIn(workspace, reference, options);
        return movesIn('remove', options)(workspace);
      };
      showGroupChange(await runGroupChange(env, options.org, reference, bodyFor), options);
    });

  common(groups.command('delete').argument(...GROUP_ARGUMENT))
    .description('Delete a group with its rules; what that newly permits is shown.')
    .option(...FAIL)
    .action(async (reference: string, options: WhoOptions) => {
      showGroupDeletion(await runGroupDeletion(env, options.org, reference, options.failOnNewAccess === true), options);
    });
}

/** @throws Error that names those who are not in the group */
function checkIsIn(workspace: Workspace, reference: string, { member = [], key = [] }: WhoOptions): void {
  const { group } = getGroup(workspace.db, workspace.actor, groupId(workspace, reference));
  const there = new Set([...group.members, ...group.keys].map(({ id }) => id));
  const strangers = [
    ...member.filter((each) => !there.has(memberId(workspace, each))),
    ...key.filter((each) => !there.has(keyId(workspace, each))),
  ];
  if (strangers.length === 0) return;
  throw new Error(
    `Not in the group "${group.name}": ${strangers.join(', ')}. "groups show ${group.name}" lists who is in it.`,
  );
}

const movesIn =
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

/** Changes a group. @param reference its id or name @param bodyFor makes a `GroupPatch` */
const runGroupChange = (
  env: Environment,
  org: string | undefined,
  reference: string,
  bodyFor: (workspace: Workspace) => object,
): Promise<GroupChangeAnswer> =>
  runJudged(env, org, {
    plan: (workspace) =>
      readGroupPlan(workspace.db, workspace.actor, groupId(workspace, reference), bodyFor(workspace)),
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return changeGroup(db, actor, groupId(workspace, reference), bodyFor(workspace), now, judged);
    },
  });

/** Deletes a group. @param reference its id or name */
const runGroupDeletion = (
  env: Environment,
  org: string | undefined,
  reference: string,
  failOnNewAccess: boolean,
): Promise<GroupDeletion> =>
  runJudged(env, org, {
    plan: (workspace) =>
      readGroupDeletion(workspace.db, workspace.actor, groupId(workspace, reference), failOnNewAccess),
    write: (workspace, judged) => {
      const { db, actor, now } = workspace;
      return deleteGroup(db, actor, groupId(workspace, reference), failOnNewAccess, now, judged);
    },
  });

function showGroups(groups: readonly GroupRecord[], format: Format): void {
  if (format.json) {
    printJson({ groups, nextCursor: null });
    return;
  }
  const rows = groups.map(({ id, name, members, keys, description, createdAt }): Cell[] => [
    { text: name },
    { text: id },
    { text: String(members.length) },
    { text: String(keys.length) },
    { text: description ?? '-' },
    { text: timeText(createdAt) },
  ]);
  const columns = [free('NAME'), 'ID', 'MEMBERS', 'KEYS', free('DESCRIPTION'), ...extra('CREATED')];
  printTable(columns, rows, 'There are no groups.', format);
}

/** A group and who is in it. */
function showGroup(answer: GroupAnswer | GroupChangeAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { id, name, description, members, keys } = answer.group;
  print(`${withName(id, name)}${description === null ? '' : `: ${description}`}`);
  print('');
  const rows: Cell[][] = [
    ...members.map((member) => [{ text: 'member' }, { text: member.id }, { text: member.email }]),
    ...keys.map((key) => [{ text: 'key' }, { text: key.id }, { text: key.description || '-' }]),
  ];
  printTable(['IN IT', 'ID', free('NAME')], rows, 'Nobody is in it.');
}

/** A changed group, and what the rules newly permit. */
function showGroupChange(change: GroupChangeAnswer, format: Format): void {
  showGroup(change, format);
  if (format.json) return;
  print('');
  showWidening(change.widens);
}

function showGroupDeletion(deletion: GroupDeletion, { json }: Format): void {
  if (json) {
    printJson(deletion);
    return;
  }
  print(`Removed ${deletion.id}.`);
  showWidening(deletion.widens);
}
