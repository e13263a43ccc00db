import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import {
  changeOrganization,
  createOrganization,
  listOrganizations,
  type Tenant,
} from '../admin/tenants/organizations.ts';
import { changeProject, createProject, deleteProject } from '../admin/tenants/projects.ts';
import { systemClock, type TtlUnit } from '../domain/time.ts';
import type { OrganizationPatch, OrganizationRecord, ProjectRecord } from '../generated/types.ts';
import { showRemoved } from './provider-records.ts';
import { everyProject, projectId } from './record-references.ts';
import {
  limitedByMinute,
  limitsText,
  type MinuteOptions,
  minuteColumn,
  minuteFields,
  periodFields,
} from './terminal/limit-options.ts';
import {
  type CommonOptions,
  common,
  type Duration,
  listing,
  named,
  type Period,
  parsePeriod,
  parseTtl,
  wide,
} from './terminal/options.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inDatabase, inWorkspace, secretsOf, type Workspace } from './workspace.ts';

const PLANS = ['free', 'pro', 'enterprise'] as const;

interface OrganizationOptions {
  readonly org?: string;
  readonly json?: true;
  readonly wide?: true;
}

interface OrganizationCreateOptions extends Pick<OrganizationOptions, 'json'> {
  readonly owner: string;
}

/** Text of the largest limits of keys that developers make. */
function newKeysText(limits: OrganizationRecord['newKeyLimits']): string {
  if (limits === null) return 'as most limited';
  const { ttl } = limits;
  const [spend, lifetime] = [limitsText(limits), ttl === null ? [] : [`${ttl.value} ${ttl.unit}`]];
  return [...(spend === '-' ? [] : [spend]), ...lifetime].join(', ') || 'unlimited';
}

function printOrganizations(organizations: readonly OrganizationRecord[], format: Format = { wide: true }): void {
  const minute = minuteColumn(organizations);
  const rows = organizations.map((each) => [
    ...[each.name, each.id, each.plan, newKeysText(each.newKeyLimits), timeText(each.createdAt)].map((text) => ({
      text,
    })),
    ...minute.cells(each),
  ]);
  const columns = [free('NAME'), 'ID', 'PLAN', 'NEW KEYS', ...extra('CREATED', ...minute.titles)];
  printTable(columns, rows, 'There are no organizations.', format);
}

function showNewOrganization(tenant: Tenant, json: true | undefined): void {
  if (json) {
    printJson(tenant);
    return;
  }
  const { organization, project, owner, masterKey } = tenant;
  print(`organization  ${organization.id}
project       ${project.id}
owner         ${owner.id} (${owner.email})
master key    ${masterKey.token}

This token is shown once, now. Keep it.`);
}

interface OrganizationUpdateOptions extends OrganizationOptions, MinuteOptions {
  readonly name?: string;
  readonly newKeys?: string;
  readonly newKeyLimit?: string;
  readonly newKeyPeriodLimit?: string;
  readonly newKeyPeriod?: Period;
  readonly newKeyTtl?: Duration<TtlUnit>;
}

const UPDATE_HELP = `
A key that a developer makes for themselves, by the API, in the pages or when they connect an application, is limited as their most
limited key, and shares its limits. What is set here holds instead, for each such key; a limit that is not named is then as large as
they like. To limit what a person spends with all keys: portcullis budgets set --member.

Examples:
  $ portcullis organizations update --new-key-limit 25 --new-key-period-limit 10 --new-key-period calendar-month --new-key-ttl 90days
  $ portcullis organizations update --new-keys as-most-limited`;

/** The largest limits of new keys, where an option names them. @throws UsageError */
function newKeyLimits(options: OrganizationUpdateOptions): Pick<OrganizationPatch, 'newKeyLimits'> {
  const { newKeys, newKeyLimit, newKeyPeriodLimit, newKeyPeriod, newKeyTtl } = options;
  const limits = {
    ...(newKeyLimit === undefined ? {} : { usageLimit: newKeyLimit }),
    ...(newKeyPeriodLimit === undefined ? {} : { periodUsageLimit: newKeyPeriodLimit }),
    ...(newKeyPeriod === undefined ? {} : periodFields(newKeyPeriod)),
    ...(newKeyTtl === undefined ? {} : { ttl: newKeyTtl }),
  };
  const isNamed = Object.keys(limits).length > 0;
  if (newKeys !== undefined && isNamed) throw new UsageError('Choose --new-keys or limits of new keys.');
  if (newKeys === undefined) return isNamed ? { newKeyLimits: limits } : {};
  return { newKeyLimits: newKeys === 'unlimited' ? {} : null };
}

function updateCommand(organizations: Command, env: Environment): void {
  limitedByMinute(organizations.command('update'))
    .description(
      'Change the name of an organization, the limits a minute of all its keys together, or the largest limits of keys that its developers make.',
    )
    .option('--name <text>', 'what people call it')
    .option('--new-key-limit <usd>', 'largest all-time spend cap of a key that a developer makes')
    .option('--new-key-period-limit <usd>', 'largest recurring spend cap of such a key')
    .addOption(
      new Option('--new-key-period <length>', 'window of that cap: 1day, 1month, calendar-month').argParser(
        parsePeriod,
      ),
    )
    .addOption(
      new Option('--new-key-ttl <length>', 'longest time to live of such a key: 12hours, 90days').argParser(parseTtl),
    )
    .addOption(
      new Option('--new-keys <rule>', 'limit such keys as the most limited key of their owner, or not at all').choices([
        'as-most-limited',
        'unlimited',
      ]),
    )
    .option('--org <organization>', 'the organization, where there are several')
    .option('--json', 'print JSON')
    .addHelpText('after', UPDATE_HELP)
    .action(async (options: OrganizationUpdateOptions) => {
      const { name, org, json } = options;
      const body = { ...(name === undefined ? {} : { name }), ...minuteFields(options), ...newKeyLimits(options) };
      if (Object.keys(body).length === 0)
        throw new UsageError('Say what to change: --name, --rpm, --tpm, --new-key-limit, --new-keys.');
      const changed = await inWorkspace(env, 'write', org, ({ db, actor, now }) =>
        changeOrganization(db, actor, body, now),
      );
      if (json) printJson(changed);
      else printOrganizations([changed.organization]);
    });
}

/** `portcullis organizations …`. */
export function organizationCommands(program: Command, env: Environment): void {
  const organizations = program
    .command('organizations')
    .alias('organization')
    .description('Create, list and change organizations, and set their plans.');

  organizations
    .command('create')
    .description('Create an organization with a project, its owner and a master key, whose token is shown once, now.')
    .argument('<name>', 'what people call it')
    .requiredOption('--owner <e-mail>', 'address of its first owner')
    .option('--json', 'print JSON')
    .action(async (name: string, { owner, json }: OrganizationCreateOptions) => {
      const tenant = await inDatabase(env, 'write', (db, config) => {
        const [pepper] = secretsOf(config).peppers;
        return createOrganization(db, { name, ownerEmail: owner }, { now: systemClock.now(), pepper });
      });
      showNewOrganization(tenant, json);
    });

  wide(organizations.command('list'))
    .description('List the organizations of this installation, and their plans.')
    .option('--json', 'print JSON')
    .action(async (options: OrganizationOptions) => {
      const listed = await inDatabase(env, 'read', listOrganizations);
      if (options.json) printJson({ organizations: listed, nextCursor: null });
      else printOrganizations(listed, { wide: options.wide });
    });

  updateCommand(organizations, env);

  organizations
    .command('set-plan')
    .description(
      'Set the plan of an organization: `free`, `pro` or `enterprise`. IP rules can only be written on the enterprise plan; existing ones stay in force.',
    )
    .addArgument(new Argument('<plan>', 'the plan').choices(PLANS))
    .option('--org <organization>', 'the organization, where there are several')
    .option('--json', 'print JSON')
    .action(async (plan: string, { org, json }: OrganizationOptions) => {
      const changed = await inWorkspace(env, 'write', org, ({ db, actor, now }) =>
        changeOrganization(db, actor, { plan }, now),
      );
      if (json) printJson(changed);
      else printOrganizations([changed.organization]);
    });
}

interface CacheOptions {
  readonly caching?: 'on' | 'off';
  readonly cacheSeconds?: number;
}

type ProjectUpdateOptions = CommonOptions & CacheOptions & MinuteOptions & { readonly name?: string };

const PROJECT_ARGUMENT = ['<project>', "the project's id or name"] as const;

function parseSeconds(text: string): number {
  if (!/^[0-9]{1,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.');
  return Number(text);
}

const cached = (command: Command): Command =>
  command
    .addOption(
      new Option('--caching <on|off>', 'whether equal requests are answered from memory').choices(['on', 'off']),
    )
    .addOption(new Option('--cache-seconds <n>', 'how long an answer is kept, 10 to 31536000').argParser(parseSeconds));

const cacheFields = ({ caching, cacheSeconds }: CacheOptions): Record<string, unknown> =>
  named({ cachingEnabled: caching === undefined ? undefined : caching === 'on', cacheDurationSeconds: cacheSeconds });

const PROJECT_TITLES = [free('NAME'), 'ID', 'CACHE', ...extra('CREATED')];

const projectRow = (project: ProjectRecord): Cell[] => [
  { text: project.name },
  { text: project.id },
  { text: project.cachingEnabled ? `${project.cacheDurationSeconds} s` : 'off' },
  { text: timeText(project.createdAt) },
];

function printProjects(projects: readonly ProjectRecord[], format: Format): void {
  const minute = minuteColumn(projects);
  const rows = projects.map((project) => [...projectRow(project), ...minute.cells(project)]);
  printTable([...PROJECT_TITLES, ...minute.titles], rows, 'There are no projects.', format);
}

function showProjects(projects: readonly ProjectRecord[], format: CommonOptions): void {
  if (format.json) printJson({ projects, nextCursor: null });
  else printProjects(projects, format);
}

function showProject(project: ProjectRecord, { json }: CommonOptions): void {
  if (json) printJson({ project });
  else printProjects([project], { wide: true });
}

/** `portcullis projects …`. */
export function projectCommands(program: Command, env: Environment): void {
  const projects = program.command('projects').description('Create, list and change projects.');
  const changing = <T>({ org }: CommonOptions, change: (workspace: Workspace) => T): Promise<T> =>
    inWorkspace(env, 'write', org, change);

  listing(projects.command('list'))
    .description('List the projects, newest first.')
    .action(async (options: CommonOptions) => {
      showProjects(await inWorkspace(env, 'read', options.org, everyProject), options);
    });

  limitedByMinute(cached(common(projects.command('create').argument('<name>', 'what people call it'))))
    .description('Make a project.')
    .action(async (name: string, options: CommonOptions & CacheOptions & MinuteOptions) => {
      const body = { name, ...cacheFields(options), ...minuteFields(options) };
      const { project } = await changing(options, ({ db, actor, now }) => createProject(db, actor, body, now));
      showProject(project, options);
    });

  limitedByMinute(cached(common(projects.command('update').argument(...PROJECT_ARGUMENT))))
    .description('Change the name, the cache or the limits a minute of a project.')
    .option('--name <text>', 'new name')
    .action(async (reference: string, options: ProjectUpdateOptions) => {
      const body = { ...named({ name: options.name }), ...cacheFields(options), ...minuteFields(options) };
      if (Object.keys(body).length === 0)
        throw new UsageError('Say what to change: --name, --caching, --cache-seconds, --rpm, --tpm.');
      const { project } = await changing(options, (workspace) =>
        changeProject(workspace.db, workspace.actor, projectId(workspace, reference), body, workspace.now),
      );
      showProject(project, options);
    });

  common(projects.command('delete').argument(...PROJECT_ARGUMENT))
    .description('Delete a project with its keys, and with the provider keys that are for it alone.')
    .action(async (reference: string, options: CommonOptions) => {
      const deleted = await changing(options, (workspace) =>
        deleteProject(workspace.db, workspace.actor, projectId(workspace, reference), workspace.now),
      );
      showRemoved(deleted, options);
    });
}
