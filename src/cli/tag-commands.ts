import type { Command } from 'commander';
import { changeTagSet, createTagSet, deleteTagSet, listTagSets } from '../admin/providers/tag-sets.ts';
import type { TagSetRecord } from '../generated/types.ts';
import { showRemoved, showTagSet, showTagSets } from './provider-records.ts';
import { everyPage } from './record-references.ts';
import { FAIL_ON_NEW_ACCESS, type MustNotWiden, runRehearsed, showWidening } from './rule-output.ts';
import { type CommonOptions, common, listing } from './terminal/options.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

const TARGET_ARGUMENT = [
  '<target>',
  'a model (gpt-5), a model at a provider (openai/gpt-5, acme/llama), or all of a provider (openai/*)',
] as const;

const EXAMPLES = `
Tags are words or name:value. Where the catalogue states facts (region, retention, stability, no_training) nobody else does; of
custom providers and upstreams only you can.

Example:
  $ portcullis tags set 'acme/*' region:eu no_training
  $ portcullis rules add --organization allow_tags region:eu`;

const everyTagSet = ({ db, actor }: Workspace): TagSetRecord[] =>
  everyPage((page) => {
    const { tagSets: items, nextCursor } = listTagSets(db, actor, page);
    return { items, nextCursor };
  });

const findTagSet = (workspace: Workspace, target: string): TagSetRecord | undefined =>
  everyTagSet(workspace).find((each) => each.target === target || each.id === target);

/** `portcullis tags …`. */
export function tagCommands(program: Command, env: Environment): void {
  const tags = program.command('tags').description('Put tags of your own on models and providers, for tag rules.');

  common(
    tags
      .command('set')
      .argument(...TARGET_ARGUMENT)
      .argument('<tags...>', 'all the tags that it has from now on'),
  )
    .description(
      'Put tags on a model or a provider, in place of those that you put there before; what the rules newly permit because of it is shown.',
    )
    .option(...FAIL_ON_NEW_ACCESS)
    .addHelpText('after', EXAMPLES)
    .action(async (target: string, wanted: string[], options: CommonOptions & MustNotWiden) => {
      const answer = await runRehearsed(env, options, (workspace) => {
        const { db, actor, now } = workspace;
        const write = { now, catalog: workspace.catalog() };
        const present = findTagSet(workspace, target);
        return present === undefined
          ? createTagSet(db, actor, { target, tags: wanted }, write)
          : changeTagSet(db, actor, present.id, { tags: wanted }, write);
      });
      showTagSet(answer, options);
      if (!options.json) showWidening(answer.widens);
    });

  listing(tags.command('list'))
    .description("List the organization's own tags, newest first.")
    .action(async (options: CommonOptions) => {
      showTagSets(await inWorkspace(env, 'read', options.org, everyTagSet), options);
    });

  common(
    tags
      .command('remove')
      .alias('delete')
      .argument(...TARGET_ARGUMENT),
  )
    .description('Take your tags from a model or a provider; what the rules newly permit because of it is shown.')
    .option(...FAIL_ON_NEW_ACCESS)
    .action(async (target: string, options: CommonOptions & MustNotWiden) => {
      const removed = await runRehearsed(env, options, (workspace) => {
        const { db, actor, now } = workspace;
        const present = findTagSet(workspace, target);
        if (present === undefined) throw new Error(`There are no tags of your own on "${target}".`);
        return deleteTagSet(db, actor, present.id, now);
      });
      showRemoved(removed, options);
      if (!options.json) showWidening(removed.widens);
    });
}
