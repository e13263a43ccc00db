import { type Command, Option } from 'commander';
import {
  type CustomProviderWrite,
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
} from '../../admin/providers/custom-providers.ts';
import { readList } from '../../config/config-value.ts';
import { WIRE_FORMATS } from '../../domain/provider.ts';
import { showCustomProvider, showCustomProviders, showRemoved } from '../output/provider-output.ts';
import { customProviderId, everyCustomProvider } from '../run/provider-references.ts';
import { type Environment, inWorkspace, type Workspace } from '../run/workspace.ts';
import { type CommonOptions, common, listing, named } from '../terminal/common-options.ts';

interface ProviderOptions extends CommonOptions {
  readonly wire?: string;
  readonly baseUrl?: string;
  readonly keyless?: boolean;
  readonly fields?: string;
}

const PROVIDER_ARGUMENT = ['<customProvider>', "the custom provider's name or id"] as const;

const described = (command: Command): Command =>
  common(command)
    .option('--base-url <url>', 'where its API is, up to and with the version: https://models.example/v1')
    .addOption(new Option('--wire <api>', 'the API that it speaks; default: openai').choices(WIRE_FORMATS))
    .option('--keyless', 'it asks for no credential')
    .option('--fields <names>', "request fields that it takes beyond its API's, as a comma list; `none`");

const fieldsOf = ({ wire, baseUrl, keyless, fields }: ProviderOptions) =>
  named({ wire, baseUrl, keyless, fields: fields === 'none' ? [] : fields && readList(fields) });

const writeOf = ({ now, catalog, config }: Workspace): CustomProviderWrite => ({
  now,
  catalog: catalog(),
  allowPrivateUpstreams: config.allowPrivateUpstreams,
});

const EXAMPLES = `
Example:
  $ portcullis custom-providers add acme --base-url https://models.example/v1
  $ portcullis custom-models add acme llama-3.3-70b --price prompt=0.59 --price completion=0.79
  $ portcullis provider-keys add custom:acme --label Acme --token-stdin < key.txt`;

/** `portcullis custom-providers …`. */
export function customProviderCommands(program: Command, env: Environment): void {
  const providers = program
    .command('custom-providers')
    .description("Add, list and change providers of the organization's own.");

  described(providers.command('add').argument('<name>', 'small letters and single hyphens'))
    .description('Add a provider; its models are called `<name>/<model>`.')
    .addHelpText('after', EXAMPLES)
    .action(async (name: string, options: ProviderOptions) => {
      const added = await inWorkspace(env, 'write', options.org, (workspace) =>
        createCustomProvider(workspace.db, workspace.actor, { name, ...fieldsOf(options) }, writeOf(workspace)),
      );
      showCustomProvider(added, options);
    });

  listing(providers.command('list'))
    .description('List the custom providers, newest first.')
    .action(async (options: CommonOptions) => {
      showCustomProviders(await inWorkspace(env, 'read', options.org, everyCustomProvider), options);
    });

  described(providers.command('update').argument(...PROVIDER_ARGUMENT))
    .description('Change a custom provider; what you leave out stays as it is. Its name never changes.')
    .option('--no-keyless', 'it asks for a credential')
    .action(async (provider: string, options: ProviderOptions) => {
      const changed = await inWorkspace(env, 'write', options.org, (workspace) => {
        const id = customProviderId(workspace, provider);
        return changeCustomProvider(workspace.db, workspace.actor, id, fieldsOf(options), writeOf(workspace));
      });
      showCustomProvider(changed, options);
    });

  common(
    providers
      .command('remove')
      .alias('delete')
      .argument(...PROVIDER_ARGUMENT),
  )
    .description('Remove a custom provider, its models and its provider keys.')
    .action(async (provider: string, options: CommonOptions) => {
      const removed = await inWorkspace(env, 'write', options.org, (workspace) =>
        deleteCustomProvider(workspace.db, workspace.actor, customProviderId(workspace, provider), workspace.now),
      );
      showRemoved(removed, options);
    });
}
