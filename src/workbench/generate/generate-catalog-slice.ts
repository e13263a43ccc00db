import type { Catalog } from '../../catalog/catalog.ts';
import { canonicalModelId } from '../../config/upstreams.ts';
import { type Mapping, mappingNames } from '../../domain/model.ts';
import type { FixtureMapping, FixtureModel } from '../../generated/types.ts';
import { writeMapping } from '../fixtures/fixture-mapping.ts';
import { listOf } from '../world/lists.ts';

/** The models that boundary cases are about, as a fixture gives them, and the names by which they are asked for. */
export interface Slice {
  readonly models: Readonly<Record<string, FixtureModel>>;
  readonly custom: Readonly<Record<string, FixtureMapping>>;
  /** Bare and pinned; every name means a model of the slice. */
  readonly names: readonly string[];
}

/** What models of no particular price cost. */
export const PRICED: FixtureMapping = { inputPricePerMillion: '1', outputPricePerMillion: '4' };

const MODEL_ID = /^[A-Za-z0-9._:@-]{1,512}$/;
const PROVIDER_ID = /^[A-Za-z0-9._:@-]{1,512}$/;
const CUSTOM_PROVIDER = /^[a-z]+(-[a-z]+)*$/;

export const EMPTY_SLICE: Slice = { models: {}, custom: {}, names: [] };

/** A model under its canonical id at some providers, asked for by each of its names. */
export function modelSlice(
  id: string,
  providers: readonly string[],
  aliases: readonly string[] = [],
  mapping: FixtureMapping = PRICED,
): Slice {
  // A canonical id holds no `/`: a provider's own id that does goes by the one with `--`.
  const modelId = canonicalModelId(id);
  const served = providers.filter((provider) => PROVIDER_ID.test(provider));
  if (!MODEL_ID.test(modelId) || served.length === 0) return EMPTY_SLICE;
  const { externalId = id } = mapping;
  const written = { ...(externalId === modelId ? {} : { externalId }), ...mapping };
  return {
    models: {
      [modelId]: {
        ...(aliases.length === 0 ? {} : { aliases: [...aliases] }),
        providers: Object.fromEntries(served.map((provider) => [provider, written])),
      },
    },
    custom: {},
    names: [
      ...new Set(
        served.flatMap((provider) => namesOf([modelId, { aliases: [...aliases], providers: { [provider]: written } }])),
      ),
    ],
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
  custom: Object.fromEntries(mappings.map((mapping) => [mapping.id, writeMapping(mapping)])),
  names: mappings.map(({ id }) => id),
});

/** What a name means in the catalogue of this installation, as it is there; nothing for an unknown name. */
export function knownSlice(catalog: Catalog, name: string): Slice {
  const modelIds = new Set((catalog.resolve(name) ?? []).map(({ modelId }) => modelId));
  const models = catalog.models().filter(({ id }) => modelIds.has(id));
  const slices = models.flatMap(({ id, aliases, mappings }) =>
    mappings
      .filter((mapping) => catalog.resolve(mapping.id)?.length === 1)
      .map((mapping) => {
        const { externalId } = mapping;
        const named = externalId === id ? {} : { externalId };
        return modelSlice(id, [mapping.providerId], aliases, { ...named, ...writeMapping(mapping) });
      }),
  );
  return mergeSlices(slices);
}

/** All of them together; of what several say of one model at one provider the first holds. */
export function mergeSlices(slices: readonly Slice[]): Slice {
  const models = new Map<string, FixtureModel>();
  for (const [id, model] of slices.flatMap((slice) => Object.entries(slice.models))) {
    const before = models.get(id);
    const aliases = [...new Set([...listOf(before?.aliases), ...listOf(model.aliases)])];
    models.set(id, {
      ...(aliases.length === 0 ? {} : { aliases }),
      providers: { ...model.providers, ...before?.providers },
    });
  }
  const custom = new Map(slices.flatMap((slice) => Object.entries(slice.custom)).reverse());
  const served = new Set([...[...models].flatMap(namesOf), ...custom.keys()]);
  return {
    models: Object.fromEntries(models),
    custom: Object.fromEntries(custom),
    // Of a mapping that two slices have, one may have gone by another id of its provider's.
    names: [...new Set(slices.flatMap(({ names }) => names))].filter((name) => served.has(name)),
  };
}

const namesOf = ([modelId, { aliases, providers }]: readonly [string, FixtureModel]): readonly string[] =>
  Object.entries(providers).flatMap(([providerId, { externalId = modelId }]) =>
    mappingNames({ providerId, modelId, externalId }, listOf(aliases)),
  );
