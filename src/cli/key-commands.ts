import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';
import type { InspectColor } from 'node:util';
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
} from '../admin/keys/keys.ts';
import { ROLL_ENDS, type RollEnds } from '../admin/keys/oauth-grants.ts';
import { getBudget } from '../admin/tenants/budgets.ts';
import { type TtlUnit, ttlEnd } from '../domain/time.ts';
import type { Deletion, KeyAnswer, KeyPatch, KeyRecord, KeyState } from '../generated/types.ts';
import { plainText } from '../lib/text.ts';
import { everyKey, firstOwner, keyId, memberId, projectId, projectNames } from './record-references.ts';
import {
  type LimitOptions,
  limited,
  limitedByMinute,
  limitFields,
  limitsText,
  type MinuteOptions,
  minuteColumn,
  minuteFields,
  windowText,
} from './terminal/limit-options.ts';
import { type CommonOptions, common, type Duration, listing, parseTtl } from './terminal/options.ts';
import {
  type Cell,
  extra,
  type Format,
  free,
  growingTable,
  print,
  printJson,
  printTable,
  progressBar,
  timeText,
  warn,
} from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

/** Description and tags of a key. */
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
const limitArguments = ({ limit, periodLimit, period }: LimitOptions): string =>
  [
    limit === undefined ? [] : ['--limit', limit],
    periodLimit === undefined ? [] : ['--period-limit', periodLimit],
    period === undefined
      ? []
      : ['--period', period.alignment === null ? `${period.value}${period.unit}` : `calendar-${period.unit}`],
  ]
    .flat()
    .join(' ');

/** Warnings of possible mistakes about a new key. */
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
    `This limit is of one key, and ${owner} has no budget over all of theirs: portcullis budgets set --member ${owner} ${limitArguments(options)}`,
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

interface RollOptions extends CommonOptions {
  readonly overlap?: Duration<TtlUnit>;
  readonly endApplications: RollEnds;
  readonly all?: true;
  readonly owner?: string;
  readonly project?: string;
  readonly output?: string;
}

/** A key and its new token. */
interface RolledKey {
  readonly id: string;
  readonly description: string | null;
  readonly owner: string | null;
  readonly token: string;
}

/** Keys in one transaction, so that a server's calls wait for none of them long. */
const KEYS_PER_WRITE = 20;

/** Until when the old token is accepted too, in epoch ms; null: no longer. */
const oldEnd = (length: Duration<TtlUnit> | undefined, now: number): number | null =>
  length === undefined ? null : ttlEnd(now, length.value, length.unit, '/overlap');

/** The keys that the options mean, oldest first. */
function meantKeys(workspace: Workspace, { owner, project }: RollOptions): string[] {
  const ownerId = owner === undefined ? undefined : memberId(workspace, owner);
  const keys = everyKey(workspace, project === undefined ? undefined : projectId(workspace, project));
  return keys
    .filter(({ createdBy }) => ownerId === undefined || createdBy === ownerId)
    .map(({ id }) => id)
    .toReversed();
}

function roll({ db, actor, now, pepper }: Workspace, id: string, options: RollOptions): RolledKey {
  const { overlap, endApplications: ends } = options;
  const { key } = rollKey(db, actor, id, { now, pepper: pepper(), oldEndsAt: oldEnd(overlap, now), ends });
  const { token = '', description, createdByEmail } = key;
  return { id, description, owner: createdByEmail, token };
}

const lineOf = ({ id, description, owner, token }: RolledKey): string =>
  [id, description ?? '-', owner ?? 'has left', token].map(plainText).join('\t');

const rolledText = (rolled: readonly RolledKey[], { json }: RollOptions): string =>
  rolled.map((each) => `${json ? JSON.stringify(each) : lineOf(each)}\n`).join('');

/**
 * Rolls many keys. The new tokens of a batch are in the file before it is committed, or are printed as soon as it is, so that no token
 * is lost when a later batch fails. In JSON each key is a line.
 * @throws Error where the file exists already
 */
async function rollMany(env: Environment, options: RollOptions): Promise<void> {
  const { org, output, json } = options;
  const ids = await inWorkspace(env, 'read', org, (workspace) => meantKeys(workspace, options));
  const file = output === undefined ? undefined : openSync(output, 'wx', 0o600);
  const bar = progressBar('Rolling keys');
  const table = growingTable(['ID', free('DESCRIPTION'), free('OWNER'), 'TOKEN']);
  try {
    for (let done = 0; done < ids.length; done += KEYS_PER_WRITE) {
      if (ids.length > KEYS_PER_WRITE) bar.show(done, ids.length);
      const rolled = await inWorkspace(env, 'write', org, (workspace) => {
        const batch = ids.slice(done, done + KEYS_PER_WRITE).map((id) => roll(workspace, id, options));
        if (file !== undefined) {
          writeSync(file, rolledText(batch, options));
          fsyncSync(file);
        }
        return batch;
      });
      if (file !== undefined) continue;
      bar.end();
      if (json) process.stdout.write(rolledText(rolled, options));
      else
        table(
          rolled.map(({ id, description, owner, token }) =>
            [id, description ?? '-', owner ?? 'has left', token].map((text) => ({ text })),
          ),
        );
    }
  } finally {
    bar.end();
    if (file !== undefined) closeSync(file);
  }
  if (json) return;
  if (ids.length === 0) print('There are no such keys.');
  else if (output !== undefined)
    print(`Rolled ${ids.length} ${ids.length === 1 ? 'key' : 'keys'}; the new tokens are in ${output}.`);
}

const STATE_COLOURS: Readonly<Record<KeyState, InspectColor>> = {
  active: 'green',
  limit_reached: 'yellow',
  expired: 'red',
  disabled: 'red',
};

const KEY_TITLES = [
  ...[free('DESCRIPTION'), 'ID', free('OWNER'), 'STATE', 'USD SPENT', 'USD LIMIT'],
  ...extra(free('PROJECT'), 'TOKEN', 'USD SPENT IN WINDOW', 'EXPIRES', 'LAST USED'),
];

/** By their ids. */
type ProjectNames = ReadonlyMap<string, string>;

const keyRow = (key: KeyRecord, projects: ProjectNames): Cell[] => [
  { text: key.description ?? '-' },
  { text: key.id },
  { text: key.createdByEmail ?? 'has left' },
  { text: key.state, colour: STATE_COLOURS[key.state] },
  { text: key.usage },
  { text: limitsText(key) },
  { text: projects.get(key.projectId) ?? key.projectId },
  { text: key.maskedToken ?? '-' },
  { text: windowText(key) },
  { text: timeText(key.expiresAt ?? 'never') },
  { text: timeText(key.lastUsedAt ?? 'never') },
];

/** Limits a minute and tags have a column where there are any. */
function printKeys(keys: readonly KeyRecord[], projects: ProjectNames, format: Format): void {
  const minute = minuteColumn(keys);
  const areTagged = keys.some(({ tags }) => tags.length > 0);
  printTable(
    [...KEY_TITLES, ...extra(...minute.titles, ...(areTagged ? [free('TAGS')] : []))],
    keys.map((key) => [
      ...keyRow(key, projects),
      ...minute.cells(key),
      ...(areTagged ? [{ text: key.tags.join(', ') || '-' }] : []),
    ]),
    'There are no keys.',
    format,
  );
}

function showKeys(keys: readonly KeyRecord[], projects: ProjectNames, format: Format): void {
  if (format.json) printJson({ keys, nextCursor: null });
  else printKeys(keys, projects, format);
}

function showKey(answer: KeyAnswer, projects: ProjectNames, { json }: Format): void {
  if (json) printJson(answer);
  else printKeys([answer.key], projects, { wide: true });
}

/** A key whose token is shown once: after it was made, or rolled. */
function showNewKey(answer: KeyAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { id, token, previousTokenEndsAt } = answer.key;
  print(`${id}\n\n  ${token}\n\nThis token is shown once, now. Keep it.`);
  if (previousTokenEndsAt !== null) print(`The old one is accepted too until ${previousTokenEndsAt}.`);
}

/** The new token of a key, and its applications: those that end, and those that go on. */
function showRolledKey(rolled: KeyAnswer, format: Format): void {
  showNewKey(rolled, format);
  if (format.json) return;
  const { ended, kept } = rolled.applications ?? { ended: [], kept: [] };
  for (const { clientName, endsAt } of ended) {
    print(
      `The application ${clientName} ${endsAt === undefined ? 'has ended' : 'ends with the old token'}: register it again.`,
    );
  }
  for (const { clientName } of kept)
    print(`The application ${clientName} goes on. To end it, roll with --end-applications all.`);
}

export function showDeletedKey(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Deleted ${deletion.id}.`);
}
