import { type Command, InvalidArgumentError, Option } from 'commander';
import { changeAlias, createAlias, deleteAlias, getAlias, listAliases } from '../admin/providers/aliases.ts';
import type { AliasRecord } from '../generated/types.ts';
import { showAlias, showAliases, showRemoved } from './provider-records.ts';
import { everyPage, projectId, projectNames } from './record-references.ts';
import { type CommonOptions, common, listing } from './terminal/options.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface AliasOptions extends CommonOptions {
  readonly project?: string;
}

interface SetOptions extends AliasOptions {
  readonly weights?: number[];
}

const NAME_ARGUMENT = ['<alias>', 'its name, or its id'] as const;
const PROJECT = ['--project <id|name>', "the project's own alias; without it the organization's"] as const;

const EXAMPLES = `
The first model is called; the others follow when it fails, at most three attempts in all. Rules judge the models, never the
alias, so an alias opens nothing.

Examples:
  $ portcullis aliases set fast claude-haiku-4-5 gpt-5-mini
  $ portcullis aliases set balanced gpt-5-mini claude-haiku-4-5 --weights 80,20
  $ portcullis aliases set default gpt-5-mini       # answers requests that name no model`;

function parseWeights(text: string): number[] {
  const weights = text.split(',').map((weight) => weight.trim());
  if (weights.every((weight) => /^\d{1,15}$/.test(weight))) return weights.map(Number);
  throw new InvalidArgumentError('It must be whole numbers with commas between them, such as 80,20.');
}

const everyAlias = ({ db, actor }: Workspace, project?: string): AliasRecord[] =>
  everyPage((page) => {
    const { aliases: items, nextCursor } = listAliases(db, actor, { ...page, projectId: project });
    return { items, nextCursor };
  });

/** The alias of a name in its organization or in one project, or of an id. */
function findAlias(workspace: Workspace, reference: string, { project }: AliasOptions): AliasRecord | undefined {
  const scope = project === undefined ? null : projectId(workspace, project);
  const aliases = everyAlias(workspace);
  return (
    aliases.find((alias) => alias.name === reference && alias.projectId === scope) ??
    aliases.find(({ id }) => id === reference)
  );
}

/** @throws Error that names the project which has one of this name, where the organization has none */
function aliasId(workspace: Workspace, reference: string, options: AliasOptions): string {
  const alias = findAlias(workspace, reference, options);
  if (alias !== undefined) return alias.id;
  const names = projectNames(workspace);
  const others = everyAlias(workspace).filter(({ name }) => name === reference);
  const elsewhere = others.map(({ projectId: id }) =>
    id === null ? 'the organization has one' : `the project ${names.get(id) ?? id} has one`,
  );
  const hint = elsewhere.length === 0 ? '' : `; ${elsewhere.join(', ')}`;
  throw new Error(`There is no alias "${reference}"${options.project === undefined ? '' : ' in this project'}${hint}.`);
}

/** `portcullis aliases …`. */
export function aliasCommands(program: Command, env: Environment): void {
  const aliases = program.command('aliases').description('Give lists of models names of your own, for requests.');

  common(
    aliases
      .command('set')
      .argument('<alias>', 'what requests state as their model')
      .argument(
        '<models...>',
        'models in the order in which they are tried: gpt-5-mini, openai/gpt-5-mini, acme/llama',
      ),
  )
    .option(...PROJECT)
    .addOption(
      new Option('--weights <numbers>', 'one for each model; the first choice is drawn by them').argParser(
        parseWeights,
      ),
    )
    .description('Make an alias, or give it other models, from the next request on.')
    .addHelpText('after', EXAMPLES)
    .action(async (name: string, models: string[], options: SetOptions) => {
      const { weights = null } = options;
      const [answer, names] = await inWorkspace(env, 'write', options.org, (workspace) => {
        const { db, actor, now } = workspace;
        const write = { now, catalog: workspace.catalog() };
        const present = findAlias(workspace, name, options);
        const scope = options.project === undefined ? null : projectId(workspace, options.project);
        const made =
          present === undefined
            ? createAlias(db, actor, { name, projectId: scope, models, weights }, write)
            : changeAlias(db, actor, present.id, { models, weights }, write);
        return [made, projectNames(workspace)] as const;
      });
      showAlias(answer, names, options);
    });

  listing(aliases.command('list'))
    .option('--project <id|name>', 'only those of this project')
    .description('List the aliases of the organization and of its projects, newest first.')
    .action(async (options: AliasOptions) => {
      const [listed, names] = await inWorkspace(env, 'read', options.org, (workspace) => {
        const wanted = options.project === undefined ? undefined : projectId(workspace, options.project);
        return [everyAlias(workspace, wanted), projectNames(workspace)] as const;
      });
      showAliases(listed, names, options);
    });

  common(aliases.command('show').argument(...NAME_ARGUMENT))
    .option(...PROJECT)
    .description('Show one alias, and what is wrong with it.')
    .action(async (reference: string, options: AliasOptions) => {
      const [answer, names] = await inWorkspace(env, 'read', options.org, (workspace) => {
        const { db, actor } = workspace;
        const id = aliasId(workspace, reference, options);
        return [getAlias(db, actor, id, { catalog: workspace.catalog() }), projectNames(workspace)] as const;
      });
      showAlias(answer, names, options);
    });

  common(
    aliases
      .command('remove')
      .alias('delete')
      .argument(...NAME_ARGUMENT),
  )
    .option(...PROJECT)
    .description('Remove an alias; its name means what it would without it.')
    .action(async (reference: string, options: AliasOptions) => {
      const removed = await inWorkspace(env, 'write', options.org, (workspace) => {
        const { db, actor, now } = workspace;
        return deleteAlias(db, actor, aliasId(workspace, reference, options), now);
      });
      showRemoved(removed, options);
    });
}
