import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  changeProviderKey,
  createProviderKey,
  deleteProviderKey,
  type ProviderKeyWrite,
} from '../admin/providers/provider-keys.ts';
import { everyProviderKey, providerKeyId, showProviderKey, showProviderKeys, showRemoved } from './provider-records.ts';
import { projectId } from './record-references.ts';
import { FAIL_ON_NEW_ACCESS, type MustNotWiden, runRehearsed, showWidening } from './rule-output.ts';
import { readToken, requireToken, type TokenOptions, takingToken } from './terminal/arguments.ts';
import { type CommonOptions, common, listing, named, orNone } from './terminal/options.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface KeyOptions extends CommonOptions, TokenOptions, MustNotWiden {
  readonly label?: string;
  readonly project?: string;
  readonly baseUrl?: string;
  readonly position?: number;
  readonly status?: string;
}

const KEY_ARGUMENT = ['<providerKey>', "the provider key's id or label"] as const;

function parsePosition(text: string): number {
  if (!/^[1-9][0-9]{0,2}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

const described = (command: Command): Command =>
  takingToken(common(command), "the provider's secret")
    .option(...FAIL_ON_NEW_ACCESS)
    .option('--label <text>', 'what people call it; answers to calls name it')
    .option('--project <id|name>', 'the one project whose calls use it; "none": all of them')
    .option('--base-url <url>', 'where the provider is reached with it; "none": at the provider\'s own address')
    .addOption(
      new Option('--position <n>', 'place among the keys of its provider; 1 is tried first').argParser(parsePosition),
    )
    .addOption(new Option('--status <status>', 'whether calls use it').choices(['active', 'inactive']));

/** The fields of a request that the options name. */
function fieldsOf(workspace: Workspace, { label, project, baseUrl, position, status }: KeyOptions, token?: string) {
  const scope = project === undefined || project === 'none' ? orNone(project) : projectId(workspace, project);
  return named({ label, token, projectId: scope, baseUrl: orNone(baseUrl), position, status });
}

const writeOf = ({ now, catalog, encryptionKey, config }: Workspace): ProviderKeyWrite => ({
  now,
  catalog: catalog(),
  encryptionKey: encryptionKey(),
  allowPrivateUpstreams: config.allowPrivateUpstreams,
});

/** A provider key whose encryption key is lost is mended by a new token, or removed. */
const mending = <Answer extends object>(
  env: Environment,
  options: MustNotWiden & { readonly org?: string },
  work: (workspace: Workspace) => Answer,
) => runRehearsed(env, options, work, 'encryption key');

const EXAMPLES = `
The secret is read from standard input or from an environment variable, never from an argument: everyone on this machine
can see those.

Examples:
  $ portcullis provider-keys add openai --label Main --token-stdin < key.txt
  $ portcullis provider-keys add custom:acme --label Acme --token-env ACME_KEY --project Default`;

/** `portcullis provider-keys …`. */
export function providerKeyCommands(program: Command, env: Environment): void {
  const keys = program
    .command('provider-keys')
    .description("Add, list and change the organization's own credentials at providers.");

  described(keys.command('add').argument('<provider>', 'a provider of the catalogue, or custom:<name>'))
    .description(
      "Add a credential of the organization's own; calls use it from the next one on. It is stored encrypted.",
    )
    .addHelpText('after', EXAMPLES)
    .action(async (provider: string, options: KeyOptions) => {
      const token = await requireToken(options, env);
      if (options.label === undefined) throw new UsageError('Name the provider key: --label.');
      const added = await mending(env, options, (workspace) => {
        const body = { provider, ...fieldsOf(workspace, options, token) };
        return createProviderKey(workspace.db, workspace.actor, body, writeOf(workspace));
      });
      showProviderKey(added, options);
      if (!options.json) showWidening(added.widens);
    });

  listing(keys.command('list'))
    .description('List the provider keys, in the order of use. Secrets are masked.')
    .action(async (options: CommonOptions) => {
      showProviderKeys(await inWorkspace(env, 'read', options.org, everyProviderKey, 'encryption key'), options);
    });

  described(keys.command('update').argument(...KEY_ARGUMENT))
    .description(
      'Change a provider key; what you leave out stays as it is. A base URL on another host needs the token again.',
    )
    .action(async (key: string, options: KeyOptions) => {
      const token = await readToken(options, env);
      const changed = await mending(env, options, (workspace) => {
        const body = fieldsOf(workspace, options, token);
        return changeProviderKey(
          workspace.db,
          workspace.actor,
          providerKeyId(workspace, key),
          body,
          writeOf(workspace),
        );
      });
      showProviderKey(changed, options);
      if (!options.json) showWidening(changed.widens);
    });

  common(
    keys
      .command('remove')
      .alias('delete')
      .argument(...KEY_ARGUMENT),
  )
    .description('Remove a provider key and forget its secret.')
    .option(...FAIL_ON_NEW_ACCESS)
    .action(async (key: string, options: CommonOptions & MustNotWiden) => {
      const removed = await mending(env, options, (workspace) =>
        deleteProviderKey(workspace.db, workspace.actor, providerKeyId(workspace, key), workspace.now),
      );
      showRemoved(removed, options);
      if (!options.json) showWidening(removed.widens);
    });
}
