import type { Catalog } from '../catalog/catalog.ts';
import type { Mapping, Prices } from '../domain/model.ts';
import { formatUsd, formatUsdPerMillion } from '../domain/money.ts';
import { canonicalModelId } from '../domain/upstream-config.ts';
import type { FixtureMapping, FixtureModel } from '../generated/types.ts';

/** The models that boundary cases are about, as a fixture gives them, and the names by which they are asked for. */
export interface Slice {
  readonly models: Readonly<Record<string, FixtureModel>>;
  readonly custom: Readonly<Record<string, FixtureMapping>>;
  /** Bare and pinned; every name means a model of the slice. */
  readonly names: readonly string[];
}

/** What models of no particular price cost. */
const PRICED: FixtureMapping = { inputPrice: '1', outputPrice: '4' };

const MODEL_ID = /^[A-Za-z0-9._:@-]{1,512}$/;
const PROVIDER_ID = /^[A-Za-z0-9._:@-]{1,512}$/;
const CUSTOM_PROVIDER = /^[a-z]+(-[a-z]+)*$/;

export const EMPTY_SLICE: Slice = { models: {}, custom: {}, names: [] };

/** A model under its canonical id at some providers, asked for by id and aliases, each unpinned and pinned to every provider. */
export function modelSlice(
  id: string,
  providers: readonly string[],
  aliases: readonly string[] = [],
  mapping: FixtureMapping = PRICED,
): Slice {
  // A canonical id holds no `/`: an upstream's id that does is an alias of the one with `--`.
  const canonical = canonicalModelId(id);
  const bare = [canonical, ...(canonical === id ? [] : [id]), ...aliases];
  const served = providers.filter((provider) => PROVIDER_ID.test(provider));
  if (!MODEL_ID.test(canonical) || served.length === 0) return EMPTY_SLICE;
  return {
    models: {
      [canonical]: {
        ...(bare.length === 1 ? {} : { aliases: bare.slice(1) }),
        providers: Object.fromEntries(served.map((provider) => [provider, mapping])),
      },
    },
    custom: {},
    names: bare.flatMap((name) => [name, ...served.map((provider) => `${provider}/${name}`)]),
  };
}

/** A model of a custom provider, or nothing where no custom provider can have this name. */
export function customSlice(provider: string, model: string): Slice {
  if (!CUSTOM_PROVIDER.test(provider) || provider === 'custom') return EMPTY_SLICE;
  const id = `${provider}/${model}`;
  return { models: {}, custom: { [id]: PRICED }, names: [id] };
}

/** Models of an organization's own, as they are there. */
export const ownSlice = (mappings: readonly Mapping[]): Slice => ({
  models: {},
  custom: Object.fromEntries(mappings.map((mapping) => [mapping.id, written(mapping)])),
  names: mappings.map(({ id }) => id),
});

/** What a name means in the catalogue of this installation, as it is there; nothing for an unknown name. */
export function knownSlice(catalog: Catalog, name: string): Slice {
  const modelIds = new Set((catalog.resolve(name) ?? []).map(({ modelId }) => modelId));
  const models = catalog.models().filter(({ id }) => modelIds.has(id));
  const slices = models.flatMap(({ id, aliases, mappings }) =>
    mappings
      .filter((mapping) => catalog.resolve(mapping.id)?.length === 1)
      .map((mapping) => modelSlice(id, [mapping.providerId], aliases, written(mapping))),
  );
  return mergeSlices(slices);
}

function written({ prices, freeFlag }: Mapping): FixtureMapping {
  const { prompt, completion, request, per_image }: Prices = prices;
  return {
    ...(prompt === undefined ? {} : { inputPrice: formatUsdPerMillion(prompt) }),
    ...(completion === undefined ? {} : { outputPrice: formatUsdPerMillion(completion) }),
    ...(request === undefined ? {} : { requestPrice: formatUsd(request) }),
    ...(per_image === undefined ? {} : { imagePrice: formatUsd(per_image) }),
    ...(freeFlag ? { free: true } : {}),
  };
}

/** All of them together; of what several say of one model at one provider the first holds. */
export function mergeSlices(slices: readonly Slice[]): Slice {
  const models = new Map<string, FixtureModel>();
  for (const [id, model] of slices.flatMap((slice) => Object.entries(slice.models))) {
    const before = models.get(id);
    const aliases = [...new Set([...listed(before?.aliases), ...listed(model.aliases)])];
    models.set(id, {
      ...(aliases.length === 0 ? {} : { aliases }),
      providers: { ...model.providers, ...before?.providers },
    });
  }
  return {
    models: Object.fromEntries(models),
    custom: Object.fromEntries(slices.flatMap(({ custom }) => Object.entries(custom)).reverse()),
    names: [...new Set(slices.flatMap(({ names }) => names))],
  };
}

const listed = (aliases: FixtureModel['aliases']): readonly string[] =>
  typeof aliases === 'string' ? [aliases] : (aliases ?? []);
