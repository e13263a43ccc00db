// Who serves which model at which price, as the oracle needs to know it.
import { createCatalog } from '../../../src/catalog/catalog.ts';
import type { WireFormat } from '../../../src/domain/provider.ts';
import { systemClock } from '../../../src/domain/time.ts';

export interface Served {
  readonly provider: string;
  /** The provider's own id of the model. */
  readonly model: string;
  /** By which rules may mean it. */
  readonly names: readonly string[];
  readonly custom: boolean;
  /** USD per million tokens, in and out; undefined: unknown. */
  readonly price: readonly [number | undefined, number | undefined];
  readonly free: boolean;
}

type Price = readonly [number, number];

/** The fake upstreams: by the provider that the product takes each for. */
export const UPSTREAMS: Readonly<Record<string, WireFormat>> = {
  alpha: 'openai',
  beta: 'openai',
  openai: 'openai',
  anthropic: 'anthropic',
  google: 'google',
  own: 'openai',
  'own-anthropic': 'anthropic',
  'own-google': 'google',
};

/** The providers of the environment and their models; a price that is not named is unknown. */
export const OF_ENVIRONMENT: Readonly<Record<string, Readonly<Record<string, Price | undefined>>>> = {
  alpha: { shared: [1, 10], solo: [2, 20], gratis: [0, 0], riddle: undefined },
  beta: { shared: [2, 20], pricey: [50, 200] },
};

/** The upstream that behaves well: `auto` may choose it too. */
export const PROBE = { provider: 'probe', model: 'steady', price: [1, 1] } as const;

/** The attacked organization's own providers and their models. */
export const OF_ORGANIZATION: Readonly<Record<string, Readonly<Record<string, Price>>>> = {
  own: { metered: [1, 10] },
  'own-anthropic': { clone: [3, 15] },
  'own-google': { clone: [0.5, 2] },
};

const PICO_PER_TOKEN = 1_000_000;
const usd = (pico: bigint | undefined): number | undefined =>
  pico === undefined ? undefined : Number(pico) / PICO_PER_TOKEN;

/** The catalogue's prices and names; what rules make of them, the oracle says by itself. */
const ofCatalog = (): Served[] =>
  createCatalog({ sandbox: true, upstreams: [], clock: systemClock })
    .mappings()
    .filter(({ providerId }) => providerId === 'sandbox' || providerId in UPSTREAMS)
    .map(({ providerId, externalId, names, prices, freeFlag }) => ({
      provider: providerId,
      model: externalId,
      names,
      custom: false,
      price: [usd(prices.prompt), usd(prices.completion)],
      free:
        Object.values(prices).every((price) => price === 0n) &&
        (freeFlag || (prices.prompt !== undefined && prices.completion !== undefined)),
    }));

const added = (of: Readonly<Record<string, Readonly<Record<string, Price | undefined>>>>, custom: boolean): Served[] =>
  Object.entries(of).flatMap(([provider, models]) =>
    Object.entries(models).map(([model, price]) => ({
      provider,
      model,
      names: custom ? [`${provider}/${model}`] : [model, `${provider}/${model}`],
      custom,
      price: price ?? [undefined, undefined],
      free: price?.every((each) => each === 0) === true,
    })),
  );

const SERVED = new Map(
  [
    ...ofCatalog(),
    ...added({ ...OF_ENVIRONMENT, [PROBE.provider]: { [PROBE.model]: PROBE.price } }, false),
    ...added(OF_ORGANIZATION, true),
  ].map((served) => [`${served.provider} ${served.model}`, served]),
);

/** What a provider serves under its own id of a model; undefined: it has no such model. */
export const servedBy = (provider: string, model: string): Served | undefined => SERVED.get(`${provider} ${model}`);

/** By canonical id, as answers and rows name it. */
export const servedAs = (provider: string, canonical: string): Served | undefined =>
  [...SERVED.values()].find(
    (served) => served.provider === provider && served.names.includes(`${provider}/${canonical}`),
  );

/** Names by which attackers ask for a chat. */
export const CHAT_MODELS = [
  'shared',
  'alpha/shared',
  'beta/shared',
  'solo',
  'gratis',
  'riddle',
  'pricey',
  'own/metered',
  'own-anthropic/clone',
  'own-google/clone',
  'gpt-5.2',
  'openai/gpt-6-luna',
  'gpt-6-sol',
  'claude-haiku-5-5',
  'anthropic/claude-opus-5-5',
  'claude-sonnet-5-5',
  'gemini-3.8-flash',
  'google/gemma-4-31b-it',
  'gemini-3-pro-image',
  'auto',
  'sandbox-free',
  'sandbox-paid',
] as const;

export const IMAGE_MODELS = ['gpt-image-2', 'gemini-3-pro-image'] as const;

/** They draw, in the product's own process. */
export const DRAWING_MODELS = ['sandbox-image-plus', 'sandbox-image-max'] as const;
