import { type Command, Option } from 'commander';
import {
  changeKey,
  changeKeyEnd,
  createKey,
  deleteKey,
  disableKey,
  enableKey,
  LISTED_KINDS,
  type ListedKind,
  reactivateKey,
  rollKey,
} from '../../admin/keys/keys.ts';
import { ROLL_ENDS } from '../../admin/keys/oauth-grants.ts';
import { getBudget } from '../../admin/tenants/budgets.ts';
import { type TtlUnit, ttlEnd } from '../../domain/time.ts';
import type { KeyAnswer, KeyPatch } from '../../generated/types.ts';
import { showDeletedKey, showKey, showKeys, showNewKey, showRolledKey } from '../output/key-output.ts';
import { everyKey, firstOwner, keyId, memberId, projectId, projectNames } from '../run/references.ts';
import { oldEnd, type RollOptions, rollMany } from '../run/run-roll.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, listing } from '../terminal/common-options.ts';
import { type Duration, parseTtl } from '../terminal/durations.ts';
import {
  type LimitOptions,
  limited,
  limitedByMinute,
  limitFields,
  type MinuteOptions,
  minuteFields,
} from '../terminal/limit-options.ts';
import { warn } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-error.ts';

/** What a key is called and marked with. */
interface LabelOptions {
  readonly description?: string;
  readonly tags?: readonly string[];
}

interface CreateOptions extends CommonOptions, LimitOptions, MinuteOptions, LabelOptions {
  readonly project?: string;
  readonly owner?: string;
  readonly ttl?: Duration<TtlUnit>;
}

interface UpdateOptions extends CommonOptions, LimitOptions, MinuteOptions, LabelOptions {
  readonly ttl?: Duration<TtlUnit> | 'none';
}

/** Changes what the options name; the end of a key in an entry of its own in the audit log. */
function update({ db, actor, now }: Workspace, id: string, options: UpdateOptions): KeyAnswer {
  const { ttl } = options;
  const body = { ...labelFields(options), ...limitFields(options), ...minuteFields(options) };
  const end = ttl === undefined || ttl === 'none' ? null : ttlEnd(now, ttl.value, ttl.unit, '/expiresAt');
  return db.transaction(() => {
    const ended = ttl === undefined ? undefined : changeKeyEnd(db, actor, id, end, now);
    return ended !== undefined && Object.keys(body).length === 0 ? ended : changeKey(db, actor, id, body, now);
  });
}

const KEY_ARGUMENT = ['<key>', "the key's id, masked token or description"] as const;

const ROLL_HELP = `
While both tokens are accepted, they have the same limits and rules. The old one ends at once when the key is disabled, deleted or
rolled again.

Applications (OAuth) that registered with the old token end with it. Those that a member allowed, signed in, go on; --end-applications all
ends them too, none ends no application.

Examples:
  $ portcullis keys roll CI --overlap 1h
  $ portcullis keys roll CI --end-applications all
  $ portcullis keys roll --owner anna@example.com --overlap 2days --output new-keys.txt`;

const ttlOption = (): Option =>
  new Option('--ttl <length>', 'time to live from now on: 30minutes, 12hours, 7days').argParser(parseTtl);

const TAGS = ['--tags <tags...>', 'facts for custom policy, words or name:value'] as const;

const labelFields = ({ description, tags }: LabelOptions): KeyPatch => ({
  ...(description === undefined ? {} : { description }),
  ...(tags === undefined ? {} : { tags: tags.length === 1 && tags[0] === 'none' ? [] : [...tags] }),
});

/** The options that were given, as they are written. */
const written = ({ limit, periodLimit, period }: LimitOptions): string =>
  [
    limit === undefined ? [] : ['--limit', limit],
    periodLimit === undefined ? [] : ['--period-limit', periodLimit],
    period === undefined
      ? []
      : ['--period', period.alignment === null ? `${period.value}${period.unit}` : `calendar-${period.unit}`],
  ]
    .flat()
    .join(' ');

/** What may be a mistake about a new key. */
function warningsOf({ db, actor, now }: Workspace, { key }: KeyAnswer, options: CreateOptions): string[] {
  const { createdBy, createdByEmail: owner, description, usageLimit, periodUsageLimit } = key;
  if (usageLimit === null && periodUsageLimit === null) {
    return description === null
      ? [
          `This key has no description and no limit: portcullis keys update ${key.id} --description <text> --limit <usd>`,
        ]
      : [];
  }
  if (options.owner === undefined || createdBy === null) return [];
  const { budget } = getBudget(db, actor, { kind: 'member', member: createdBy }, now);
  if (budget.usageLimit !== null || budget.periodUsageLimit !== null) return [];
  return [
    `This limit is of one key, and ${owner} has no budget over all of theirs: portcullis budgets set --member ${owner} ${written(options)}`,
  ];
}

function create(workspace: Workspace, options: CreateOptions): KeyAnswer {
  const { db, actor, now, pepper } = workspace;
  const { project, owner, ttl } = options;
  const body = {
    ...labelFields(options),
    ...limitFields(options),
    ...minuteFields(options),
    projectId: projectId(workspace, project),
    createdBy: owner === undefined ? firstOwner(workspace) : memberId(workspace, owner),
  };
  const expiresAt = ttl === undefined ? null : ttlEnd(now, ttl.value, ttl.unit, '/expiresAt');
  return createKey(db, actor, body, { now, pepper: pepper(), expiresAt });
}

/** `portcullis keys …`. */
export function keyCommands(program: Command, env: Environment): void {
  const keys = program.command('keys').description('Create, list and change gateway API keys.');

  limitedByMinute(limited(common(keys.command('create'))))
    .description('Create a key; its token is shown once, now.')
    .option('--description <text>', 'label of the key')
    .option(...TAGS)
    .option('--project <id|name>', 'project of the key, where there are several')
    .option('--owner <id|e-mail>', 'member who owns the key; default: the first owner')
    .addOption(ttlOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ portcullis keys create --description CI --period-limit 10 --period 1day --ttl 90days',
    )
    .action(async (options: CreateOptions) => {
      if ((options.periodLimit === undefined) !== (options.period === undefined)) {
        throw new UsageError('--period-limit and --period come together.');
      }
      const { made, warnings } = await inWorkspace(env, 'write', options.org, (workspace) => {
        const answer = create(workspace, options);
        return { made: answer, warnings: warningsOf(workspace, answer, options) };
      });
      showNewKey(made, options);
      for (const warning of warnings) warn(`warning: ${warning}`);
    });

  listing(keys.command('list'))
    .description(
      'List the keys, newest first. Each has its project, its owner and what it spent, in all and in its window.',
    )
    .option('--project <id|name>', 'only those of this project')
    .addOption(
      new Option('--kind <kind>', 'which keys; playground ones are those that the dashboard uses')
        .choices(LISTED_KINDS)
        .default('regular'),
    )
    .action(async (options: CommonOptions & { readonly project?: string; readonly kind: ListedKind }) => {
      const { org, project, kind } = options;
      const { listed, projects } = await inWorkspace(env, 'read', org, (workspace) => ({
        listed: everyKey(workspace, project === undefined ? undefined : projectId(workspace, project), kind),
        projects: projectNames(workspace),
      }));
      showKeys(listed, projects, options);
    });

  limitedByMinute(limited(common(keys.command('update').argument(...KEY_ARGUMENT))))
    .description('Change the description, the tags, the limits or the time to live of a key.')
    .option('--description <text>', 'new label')
    .option(TAGS[0], `${TAGS[1]}, in place of those that it has; "none" removes them`)
    .addOption(
      new Option('--ttl <length>', 'new time to live from now on: 12hours, 7days; "none": for ever').argParser(
        (text: string) => (text === 'none' ? text : parseTtl(text)),
      ),
    )
    .action((key: string, options: UpdateOptions) =>
      showChanged(env, options, key, (workspace, id) => update(workspace, id, options)),
    );

  stateCommands(keys, env);
}

type Change = (workspace: Workspace, id: string) => KeyAnswer;

async function showChanged(env: Environment, options: CommonOptions, key: string, change: Change): Promise<void> {
  const { changed, projects } = await inWorkspace(env, 'write', options.org, (workspace) => ({
    changed: change(workspace, keyId(workspace, key)),
    projects: projectNames(workspace),
  }));
  showKey(changed, projects, options);
}

function rollCommand(command: Command, env: Environment): void {
  const overlap = new Option('--overlap <length>', 'accept the old token too for so long, at most 7days: 1h, 2days');
  const ends = new Option('--end-applications <which>', 'OAuth applications of the key that end with the old token');
  command
    .addOption(overlap.argParser(parseTtl))
    .addOption(ends.choices(ROLL_ENDS).default('registered'))
    .addHelpText('after', ROLL_HELP)
    .addOption(new Option('--all', 'every key of the organization, in place of one').conflicts(['owner', 'project']))
    .option('--owner <id|e-mail>', 'every key of a member, in place of one')
    .option('--project <id|name>', 'every key of a project, in place of one')
    .option('--output <file>', 'with many keys: a new file for the new tokens, which only you can read')
    .action(async (key: string | undefined, options: RollOptions) => {
      const { overlap, endApplications, all, owner, project, output } = options;
      const isMany = all === true || owner !== undefined || project !== undefined;
      if (isMany === (key !== undefined)) throw new UsageError('Name a key, or choose --all, --owner or --project.');
      if (key === undefined) return rollMany(env, options);
      if (output !== undefined) throw new UsageError('--output goes with --all, --owner or --project.');
      const rolled = await inWorkspace(env, 'write', options.org, (workspace) => {
        const { db, actor, now, pepper } = workspace;
        const oldEndsAt = oldEnd(overlap, now);
        return rollKey(db, actor, keyId(workspace, key), { now, pepper: pepper(), oldEndsAt, ends: endApplications });
      });
      showRolledKey(rolled, options);
    });
}

/** The commands that take a key from one state to another. */
function stateCommands(keys: Command, env: Environment): void {
  const onKey = (name: string, description: string): Command =>
    common(keys.command(name).argument(...KEY_ARGUMENT)).description(description);
  const showing = (key: string, options: CommonOptions, change: Change): Promise<void> =>
    showChanged(env, options, key, change);

  onKey('disable', 'Refuse calls with a key until it is enabled again.').action((key: string, options: CommonOptions) =>
    showing(key, options, ({ db, actor, now }, id) => disableKey(db, actor, id, now)),
  );
  onKey('enable', 'Enable a disabled key: its calls are accepted again.').action(
    (key: string, options: CommonOptions) =>
      showing(key, options, ({ db, actor, now }, id) => enableKey(db, actor, id, now)),
  );
  onKey('reactivate', 'Give an expired key a new expiration.')
    .addOption(ttlOption().makeOptionMandatory())
    .action((key: string, options: CommonOptions & { readonly ttl: Duration<TtlUnit> }) => {
      const { value, unit } = options.ttl;
      return showing(key, options, ({ db, actor, now }, id) =>
        reactivateKey(db, actor, id, ttlEnd(now, value, unit, '/expiresAt'), now),
      );
    });
  rollCommand(
    common(keys.command('roll').argument('[key]', KEY_ARGUMENT[1])).description(
      'Replace the token of a key; the new one is shown once, now. The old one is refused at once, or with `--overlap` ends by itself.',
    ),
    env,
  );
  onKey('delete', 'Delete a key for good.').action(async (key: string, options: CommonOptions) => {
    const deleted = await inWorkspace(env, 'write', options.org, (workspace) =>
      deleteKey(workspace.db, workspace.actor, keyId(workspace, key), workspace.now),
    );
    showDeletedKey(deleted, options);
  });
}
