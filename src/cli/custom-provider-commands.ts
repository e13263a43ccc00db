import { type Command, InvalidArgumentError, Option } from 'commander';
import {
  changeCustomModel,
  createCustomModel,
  deleteCustomModel,
  PRICE_NAMES,
} from '../admin/providers/custom-models.ts';
import {
  type CustomProviderWrite,
  changeCustomProvider,
  createCustomProvider,
  deleteCustomProvider,
} from '../admin/providers/custom-providers.ts';
import { readList } from '../config/variables.ts';
import { formatUsd, isOddlyLow, parseUsd, parseUsdPerMillion } from '../domain/limits.ts';
import { WIRE_FORMATS } from '../domain/provider.ts';
import type { CustomModelAnswer, InputModality, OutputModality } from '../generated/types.ts';
import {
  customModelId,
  customProviderId,
  everyCustomModel,
  everyCustomProvider,
  parseCapabilities,
  showCustomModel,
  showCustomModels,
  showCustomProvider,
  showCustomProviders,
  showRemoved,
} from './provider-records.ts';
import { FAIL_ON_NEW_ACCESS, type MustNotWiden, runRehearsed, showWidening } from './rule-output.ts';
import { type CommonOptions, common, listing, named, orNone, wordList } from './terminal/options.ts';
import { warn } from './terminal/output.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface ProviderOptions extends CommonOptions, MustNotWiden {
  readonly wire?: string;
  readonly baseUrl?: string;
  readonly keyless?: boolean;
  readonly fields?: string;
}

const PROVIDER_ARGUMENT = ['<customProvider>', "the custom provider's name or id"] as const;

const withProviderOptions = (command: Command): Command =>
  common(command)
    .option(...FAIL_ON_NEW_ACCESS)
    .option('--base-url <url>', 'where its API is, up to and with the version: https://models.example/v1')
    .addOption(new Option('--wire <api>', 'the API that it speaks; default: openai').choices(WIRE_FORMATS))
    .option('--keyless', 'it asks for no credential')
    .option('--fields <names>', "request fields that it takes beyond its API's, as a comma list; `none`");

const providerFields = ({ wire, baseUrl, keyless, fields }: ProviderOptions) =>
  named({ wire, baseUrl, keyless, fields: fields === 'none' ? [] : fields && readList(fields) });

const customProviderWrite = ({ now, catalog, config }: Workspace): CustomProviderWrite => ({
  now,
  catalog: catalog(),
  allowPrivateUpstreams: config.allowPrivateUpstreams,
});

const PROVIDER_EXAMPLES = `
Example:
  $ portcullis custom-providers add acme --base-url https://models.example/v1
  $ portcullis custom-models add acme llama-3.3-70b --price prompt=0.59 --price completion=0.79
  $ portcullis provider-keys add custom:acme --label Acme --token-stdin < key.txt`;

/** `portcullis custom-providers …`. */
export function customProviderCommands(program: Command, env: Environment): void {
  const providers = program
    .command('custom-providers')
    .description("Add, list and change providers of the organization's own.");

  withProviderOptions(providers.command('add').argument('<name>', 'small letters and single hyphens'))
    .description('Add a provider; its models are called `<name>/<model>`.')
    .addHelpText('after', PROVIDER_EXAMPLES)
    .action(async (name: string, options: ProviderOptions) => {
      const added = await runRehearsed(env, options, (workspace) =>
        createCustomProvider(
          workspace.db,
          workspace.actor,
          { name, ...providerFields(options) },
          customProviderWrite(workspace),
        ),
      );
      showCustomProvider(added, options);
      if (!options.json) showWidening(added.widens);
    });

  listing(providers.command('list'))
    .description('List the custom providers, newest first.')
    .action(async (options: CommonOptions) => {
      showCustomProviders(await inWorkspace(env, 'read', options.org, everyCustomProvider), options);
    });

  withProviderOptions(providers.command('update').argument(...PROVIDER_ARGUMENT))
    .description('Change a custom provider; what you leave out stays as it is. Its name never changes.')
    .option('--no-keyless', 'it asks for a credential')
    .action(async (provider: string, options: ProviderOptions) => {
      const changed = await runRehearsed(env, options, (workspace) => {
        const id = customProviderId(workspace, provider);
        return changeCustomProvider(
          workspace.db,
          workspace.actor,
          id,
          providerFields(options),
          customProviderWrite(workspace),
        );
      });
      showCustomProvider(changed, options);
      if (!options.json) showWidening(changed.widens);
    });

  common(
    providers
      .command('remove')
      .alias('delete')
      .argument(...PROVIDER_ARGUMENT),
  )
    .description('Remove a custom provider, its models and its provider keys.')
    .option(...FAIL_ON_NEW_ACCESS)
    .action(async (provider: string, options: CommonOptions & MustNotWiden) => {
      const removed = await runRehearsed(env, options, (workspace) =>
        deleteCustomProvider(workspace.db, workspace.actor, customProviderId(workspace, provider), workspace.now),
      );
      showRemoved(removed, options);
      if (!options.json) showWidening(removed.widens);
    });
}

type Prices = Readonly<Record<string, string | null>>;

interface ModelOptions extends CommonOptions, MustNotWiden {
  readonly displayName?: string;
  readonly price?: Prices;
  readonly contextLength?: number | 'none';
  readonly maxOutput?: number | 'none';
  readonly supports?: Readonly<Record<string, boolean>>;
  readonly input?: readonly string[];
  readonly output?: readonly string[];
  readonly parameters?: readonly string[] | 'none';
  readonly status?: string;
}

const MODEL_ARGUMENT = ['<customModel>', '<custom provider>/<model>, or its id'] as const;

const INPUT_MODALITIES = ['text', 'image', 'audio', 'video', 'file'] as const satisfies readonly InputModality[];
const OUTPUT_MODALITIES = ['text', 'image', 'audio'] as const satisfies readonly OutputModality[];

/** Prices that are not of a token: of one image, request or search. */
const FEES: readonly string[] = ['request', 'image', 'per_image', 'web_search'];

/** `prompt=0.15`, given any number of times: token prices in USD per million, as in rules and UPSTREAM_<NAME>_PRICES, to those of the API. */
function parsePrice(text: string, before: Prices = {}): Prices {
  const [, name, price] = /^([a-z0-9_]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || price === undefined) {
    throw new InvalidArgumentError('It must be a name and USD, such as prompt=0.15, or prompt=none.');
  }
  if (!PRICE_NAMES.some((known) => known === name)) {
    throw new InvalidArgumentError(`The name must be one of ${PRICE_NAMES.join(', ')}.`);
  }
  return { ...before, [name]: price === 'none' || FEES.includes(name) ? orNone(price) : usdPerToken(name, price) };
}

function usdPerToken(name: string, usdPerMillion: string): string {
  try {
    return formatUsd(parseUsdPerMillion(usdPerMillion));
  } catch {
    throw new InvalidArgumentError(`${name} must be USD per million tokens, a decimal with at most 6 places.`);
  }
}

function parseTokens(text: string): number | 'none' {
  if (text === 'none') return text;
  if (!/^[1-9][0-9]{0,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of tokens, or none.');
  return Number(text);
}

const parseList = (text: string): string[] => text.split(',').map((item) => item.trim());
const parseParameters = (text: string): string[] | 'none' => (text === 'none' ? text : parseList(text));

const withModelOptions = (command: Command): Command =>
  common(command)
    .option(...FAIL_ON_NEW_ACCESS)
    .option('--display-name <text>', 'what people call it')
    .addOption(
      new Option(
        '--price <price>',
        'a price, as name=usd: in USD per million tokens (prompt, completion, input_cache_read, …), or each (request, image, per_image, web_search); "none": unknown. Once for each price',
      ).argParser(parsePrice),
    )
    .addOption(new Option('--context-length <tokens>', 'context window; "none": unknown').argParser(parseTokens))
    .addOption(new Option('--max-output <tokens>', 'longest answer; "none": unknown').argParser(parseTokens))
    .addOption(
      new Option(
        '--supports <list>',
        'all that it supports: streaming, vision, tools, parallel-tool-calls, reasoning, json-output, structured-outputs',
      ).argParser(parseCapabilities),
    )
    .addOption(
      new Option('--input <list>', `what it takes: ${INPUT_MODALITIES.join(', ')}`).argParser(
        wordList(INPUT_MODALITIES),
      ),
    )
    .addOption(
      new Option('--output <list>', `what it gives: ${OUTPUT_MODALITIES.join(', ')}`).argParser(
        wordList(OUTPUT_MODALITIES),
      ),
    )
    .addOption(
      new Option('--parameters <list>', 'request fields that it takes; "none": unknown').argParser(parseParameters),
    )
    .addOption(new Option('--status <status>', 'whether requests find it').choices(['active', 'inactive']));

const modelFields = (options: ModelOptions) => ({
  ...options.supports,
  ...named({
    displayName: options.displayName,
    pricing: options.price,
    contextLength: orNone(options.contextLength),
    maxOutput: orNone(options.maxOutput),
    inputModalities: options.input,
    outputModalities: options.output,
    supportedParameters: orNone(options.parameters),
    status: options.status,
  }),
});

const MODEL_EXAMPLES = `
Example:
  $ portcullis custom-models add acme org/llama-3.3-70b --price prompt=0.59 --price completion=0.79 \\
      --context-length 131072 --max-output 8192 --supports streaming,tools,json-output`;

/** Prices are given per million tokens here, and elsewhere often per token. */
function warnOfLowPrices({ customModel: { model, pricing } }: CustomModelAnswer): void {
  const low = [pricing.prompt, pricing.completion].some((price) => price !== null && isOddlyLow(parseUsd(price)));
  if (low) warn(`warning: A price of ${model} is below 0.001 USD per million tokens: was it meant per token?`);
}

/** `portcullis custom-models …`. */
export function customModelCommands(program: Command, env: Environment): void {
  const models = program.command('custom-models').description('Add, list and change models of custom providers.');

  withModelOptions(
    models
      .command('add')
      .argument('<customProvider>', "the custom provider's name or id")
      .argument('<model>', "the provider's own id of the model"),
  )
    .description('Add a model; requests mean it by `<custom provider>/<model>`.')
    .addHelpText('after', MODEL_EXAMPLES)
    .action(async (provider: string, model: string, options: ModelOptions) => {
      const added = await runRehearsed(env, options, (workspace) => {
        const body = { customProviderId: customProviderId(workspace, provider), model, ...modelFields(options) };
        return createCustomModel(workspace.db, workspace.actor, body, workspace.now);
      });
      showCustomModel(added, options);
      if (!options.json) showWidening(added.widens);
      warnOfLowPrices(added);
    });

  listing(models.command('list'))
    .description('List the custom models, newest first.')
    .option('--provider <customProvider>', 'only those of this custom provider')
    .action(async (options: CommonOptions & { readonly provider?: string }) => {
      const { org, provider } = options;
      const listed = await inWorkspace(env, 'read', org, (workspace) =>
        everyCustomModel(workspace, provider === undefined ? undefined : customProviderId(workspace, provider)),
      );
      showCustomModels(listed, options);
    });

  withModelOptions(models.command('update').argument(...MODEL_ARGUMENT))
    .description('Change a custom model; what you leave out stays as it is.')
    .action(async (model: string, options: ModelOptions) => {
      const changed = await runRehearsed(env, options, (workspace) => {
        const id = customModelId(workspace, model);
        return changeCustomModel(workspace.db, workspace.actor, id, modelFields(options), workspace.now);
      });
      showCustomModel(changed, options);
      if (!options.json) showWidening(changed.widens);
      warnOfLowPrices(changed);
    });

  common(
    models
      .command('remove')
      .alias('delete')
      .argument(...MODEL_ARGUMENT),
  )
    .description('Remove a custom model.')
    .option(...FAIL_ON_NEW_ACCESS)
    .action(async (model: string, options: CommonOptions & MustNotWiden) => {
      const removed = await runRehearsed(env, options, (workspace) =>
        deleteCustomModel(workspace.db, workspace.actor, customModelId(workspace, model), workspace.now),
      );
      showRemoved(removed, options);
      if (!options.json) showWidening(removed.widens);
    });
}
