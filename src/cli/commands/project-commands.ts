import { type Command, InvalidArgumentError, Option } from 'commander';
import { changeProject, createProject, deleteProject } from '../../admin/tenants/projects.ts';
import type { ProjectRecord } from '../../generated/types.ts';
import { minuteColumn } from '../output/limit-output.ts';
import { showRemoved } from '../output/provider-output.ts';
import { everyProject, projectId } from '../run/references.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, listing, named } from '../terminal/common-options.ts';
import { limitedByMinute, type MinuteOptions, minuteFields } from '../terminal/limit-options.ts';
import { type Cell, extra, type Format, free, printJson, printTable, timeText } from '../terminal/output.ts';
import { UsageError } from '../terminal/usage-error.ts';

interface CacheOptions {
  readonly caching?: 'on' | 'off';
  readonly cacheSeconds?: number;
}

type UpdateOptions = CommonOptions & CacheOptions & MinuteOptions & { readonly name?: string };

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

const TITLES = [free('NAME'), 'ID', 'CACHE', ...extra('CREATED')];

const row = (project: ProjectRecord): Cell[] => [
  { text: project.name },
  { text: project.id },
  { text: project.cachingEnabled ? `${project.cacheDurationSeconds} s` : 'off' },
  { text: timeText(project.createdAt) },
];

function print(projects: readonly ProjectRecord[], format: Format): void {
  const minute = minuteColumn(projects);
  const rows = projects.map((project) => [...row(project), ...minute.cells(project)]);
  printTable([...TITLES, ...minute.titles], rows, 'There are no projects.', format);
}

function showProjects(projects: readonly ProjectRecord[], format: CommonOptions): void {
  if (format.json) printJson({ projects, nextCursor: null });
  else print(projects, format);
}

function showProject(project: ProjectRecord, { json }: CommonOptions): void {
  if (json) printJson({ project });
  else print([project], { wide: true });
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
    .action(async (reference: string, options: UpdateOptions) => {
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
