import type { Prices } from '../domain/model.ts';
import { parseUsdPerMillion } from '../domain/money.ts';
import { entryOf } from '../lib/text.ts';
import { ConfigError, explained, readList, readUrl } from './config-value.ts';
import { PROVIDER_IDS } from './known-providers.ts';
import { readRequestFields } from './request-field-names.ts';

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
