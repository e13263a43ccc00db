import { parseUsdPerMillion } from '../domain/limits.ts';
import type { Prices } from '../domain/model.ts';
import { validator } from '../lib/schemas.ts';
import { entryOf } from '../lib/text.ts';
import file from './providers.json' with { type: 'json' };
import { ConfigError, explained, readList, readUrl } from './variables.ts';

const validateProviderList = validator('ProviderList');

const providerList: unknown = file;
if (!validateProviderList(providerList)) {
  throw new Error(`src/config/providers.json is not valid at ${validateProviderList.errors?.[0]?.instancePath}`);
}

/**
 * The providers of the catalogue, in the order of `providers.json` (schemas/catalog/provider-list.json), and the dialect of every
 * other OpenAI-compatible server. A provider is added there; its models are `src/catalog/data/<id>.json`.
 */
export const { providers: KNOWN_PROVIDERS, otherServers: OTHER_SERVERS } = providerList;

export const PROVIDER_IDS: readonly string[] = KNOWN_PROVIDERS.map(({ id }) => id);

export interface UpstreamModel {
  /** The upstream's own id. */
  readonly id: string;
  /** Input and output price in pico-dollars per token; empty when unknown. */
  readonly prices: Pick<Prices, 'prompt' | 'completion'>;
  /** In tokens; absent: unknown. */
  readonly contextLength?: number;
  readonly maxOutput?: number;
}

/** An OpenAI-compatible server named by `UPSTREAM_<NAME>_*`. */
export interface UpstreamConfig {
  /** Provider id. */
  readonly name: string;
  /** Without a final slash. */
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  /** In the order given, at least one. */
  readonly models: readonly UpstreamModel[];
  /** Request fields that go to it beyond those that such servers have in common. */
  readonly fields: readonly string[];
}

/** The id of a model in our catalogue, where `/` stands behind the provider only. */
export const canonicalModelId = (externalId: string): string => externalId.replaceAll('/', '--');

type Variables = Readonly<Record<string, string | undefined>>;

const VARIABLE = /^UPSTREAM_([A-Z0-9]+(?:_[A-Z0-9]+)*)_(?:BASE_URL|API_KEY|MODELS|PRICES|LIMITS|FIELDS)$/;
/** In a rule `custom` means all custom providers; `sandbox` is built in; the others are the catalogue's providers. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set(['custom', 'sandbox', ...PROVIDER_IDS]);

/** The variable that holds an upstream's credential: `UPSTREAM_GPU_BOX_API_KEY`. */
export const apiKeyVariable = (name: string): string => `UPSTREAM_${name.toUpperCase().replaceAll('-', '_')}_API_KEY`;

/**
 * The upstreams of the environment, by name (src/config/README.md, "Upstreams by environment"). Each variable's own shape has been
 * checked. @throws ConfigError for a misnamed or missing variable, a reserved name, a price for a model that is not served.
 */
export function readUpstreams(variables: Variables): UpstreamConfig[] {
  const names = new Set<string>();
  for (const variable of Object.keys(variables)) {
    if (!variable.startsWith('UPSTREAM_')) continue;
    const name = VARIABLE.exec(variable)?.[1];
    if (name === undefined) {
      throw new ConfigError(
        `${variable} is not a variable of an upstream: they are UPSTREAM_<NAME>_BASE_URL, _API_KEY, _MODELS, _PRICES, _LIMITS and _FIELDS, <NAME> in capitals, digits and single underscores.`,
      );
    }
    names.add(name);
  }
  return [...names]
    .sort()
    .map((name) => readUpstream(`UPSTREAM_${name}`, name.toLowerCase().replaceAll('_', '-'), variables));
}

function readUpstream(prefix: string, name: string, variables: Variables): UpstreamConfig {
  if (RESERVED_NAMES.has(name)) throw new ConfigError(`${prefix}_BASE_URL: the provider name ${name} is taken.`);
  const prices = readPrices(`${prefix}_PRICES`, variables[`${prefix}_PRICES`]);
  const models = [...new Set(readList(required(`${prefix}_MODELS`, variables)))];
  checkIds(`${prefix}_MODELS`, models);
  const limits = readLimits(`${prefix}_LIMITS`, variables[`${prefix}_LIMITS`]);
  for (const [variable, named] of [
    ['PRICES', prices.keys()],
    ['LIMITS', limits.keys()],
  ] as const) {
    const unserved = [...named].find((id) => !models.includes(id));
    if (unserved === undefined) continue;
    throw new ConfigError(`${prefix}_${variable} names ${unserved}, which ${prefix}_MODELS does not.`);
  }
  return {
    name,
    baseUrl: readUrl(`${prefix}_BASE_URL`, required(`${prefix}_BASE_URL`, variables)),
    apiKey: variables[`${prefix}_API_KEY`],
    models: models.map((id) => ({ id, prices: prices.get(id) ?? {}, ...limits.get(id) })),
    fields: readRequestFields(`${prefix}_FIELDS`, variables),
  };
}

/** @throws ConfigError when two models would be one in the catalogue */
function checkIds(name: string, models: readonly string[]): void {
  const known = new Map<string, string>();
  for (const model of models) {
    const id = canonicalModelId(model);
    const other = known.get(id);
    if (other !== undefined)
      throw new ConfigError(`${name} names ${other} and ${model}, which have the same id here: ${id}.`);
    known.set(id, model);
  }
}

function required(name: string, variables: Variables): string {
  const text = entryOf(variables, name);
  if (text === undefined) throw new ConfigError(`${name} is missing: an upstream needs its URL and its models.`);
  return text;
}

/** `model=input/output, ...` in USD per million tokens, to pico-dollars per token. */
function readPrices(name: string, text: string | undefined): Map<string, UpstreamModel['prices']> {
  const prices = new Map<string, UpstreamModel['prices']>();
  for (const item of readList(text)) {
    const [id = '', pair = ''] = item.split('=');
    const [input = '', output = ''] = pair.split('/');
    if (prices.has(id)) throw new ConfigError(`${name} prices ${id} twice.`);
    prices.set(
      id,
      explained(name, () => ({ prompt: parseUsdPerMillion(input), completion: parseUsdPerMillion(output) })),
    );
  }
  return prices;
}

/** `model=context/output, ...` in tokens; `-` for what is not known. */
function readLimits(name: string, text: string | undefined): Map<string, Omit<UpstreamModel, 'id' | 'prices'>> {
  const limits = new Map<string, Omit<UpstreamModel, 'id' | 'prices'>>();
  for (const item of readList(text)) {
    const [id = '', pair = ''] = item.split('=');
    const [context, output] = pair.split('/').map((part) => (part === '-' ? undefined : Number(part)));
    if (limits.has(id)) throw new ConfigError(`${name} names ${id} twice.`);
    limits.set(id, {
      ...(context === undefined ? {} : { contextLength: context }),
      ...(output === undefined ? {} : { maxOutput: output }),
    });
  }
  return limits;
}

/** Settings of the environment for a provider of the catalogue (src/config/README.md, "Providers of the catalogue"). */
export interface ServiceProvider {
  /** Provider id. */
  readonly id: string;
  /** The service's own credential; undefined: only the customers' own keys can call the provider. */
  readonly apiKey: string | undefined;
  /** In place of the provider's public address; without a final slash. */
  readonly baseUrl: string | undefined;
  /** Request fields that go to it beyond those of its table. */
  readonly fields: readonly string[];
}

/** The providers of which the environment says something, by id. @throws ConfigError */
export function readServiceProviders(variables: Readonly<Record<string, string | undefined>>): ServiceProvider[] {
  return PROVIDER_IDS.toSorted().flatMap((id) => {
    const prefix = id.toUpperCase();
    const apiKey = variables[`${prefix}_API_KEY`];
    const baseUrl = variables[`${prefix}_BASE_URL`];
    const fields = readRequestFields(`${prefix}_FIELDS`, variables);
    if (apiKey === undefined && baseUrl === undefined && fields.length === 0) return [];
    return { id, apiKey, baseUrl: baseUrl === undefined ? undefined : readUrl(`${prefix}_BASE_URL`, baseUrl), fields };
  });
}

/** Settings of the environment for providers. */
export interface ServiceConfig {
  readonly sandbox: boolean;
  readonly upstreams: readonly UpstreamConfig[];
  readonly serviceProviders: readonly ServiceProvider[];
}

/** Ids of the providers that can be called without a customer's own key: the operator has a credential, or none is asked for. */
export const servedProviders = ({ sandbox, upstreams, serviceProviders }: ServiceConfig): string[] => [
  ...(sandbox ? ['sandbox'] : []),
  ...upstreams.map(({ name }) => name),
  ...serviceProviders.filter(({ apiKey }) => apiKey !== undefined).map(({ id }) => id),
];

/**
 * Fields by which some server takes another model, a longer answer or a higher price than the gateway knows of: to let one through
 * would open a way around rules and spend caps. Those that the gateway itself writes are here too.
 */
const NEVER_NAMED: ReadonlySet<string> = new Set([
  'api_base',
  'base_url',
  'best_of',
  'container',
  'content_policy_fallbacks',
  'context_window_fallbacks',
  'extra_body',
  'fallbacks',
  'generationConfig',
  'inference_geo',
  'max_new_tokens',
  'max_output_tokens',
  'mcp_servers',
  'messages',
  'min_tokens',
  'model',
  'models',
  'n_predict',
  'num_predict',
  'num_return_sequences',
  'options',
  'plugins',
  'preset',
  'provider',
  'route',
  'search_parameters',
  'speed',
  'stream',
]);

/** Why a field may not be let through to a provider; undefined: it may. */
export const fieldFault = (name: string): string | undefined =>
  NEVER_NAMED.has(name) ? `\`${name}\` can choose another model, a longer answer or a higher price.` : undefined;

/** The fields that a variable names. Its shape has been checked. @throws ConfigError for one that cannot be let through */
function readRequestFields(
  variable: string,
  variables: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const names = readList(entryOf(variables, variable));
  for (const name of names) {
    const fault = fieldFault(name);
    if (fault !== undefined) throw new ConfigError(`${variable}: ${fault}`);
  }
  return names;
}
