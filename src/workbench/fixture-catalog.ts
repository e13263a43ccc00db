import { type Catalog, catalogOf } from '../catalog/catalog.ts';
import type { CatalogModel } from '../catalog/catalog-model.ts';
import { invalidRequest } from '../domain/errors.ts';
import { type Mapping, mappingNames, type Prices, TEXT_ONLY } from '../domain/model.ts';
import { parseUsd, parseUsdPerMillion } from '../domain/money.ts';
import { type Clock, ManualClock } from '../domain/time.ts';
import type { FixtureCatalog, FixtureMapping } from '../generated/types.ts';
import { locating } from './fixture-shape.ts';
import { FixtureFault, type Path, type SourceDocument } from './fixture-source.ts';
import { listOf } from './lists.ts';

type CatalogSlice = Exclude<FixtureCatalog, string>;

/** A slice of a catalogue, and where in a document it stands. */
export interface WrittenSlice {
  readonly document: SourceDocument;
  readonly below: Path;
  readonly slice: CatalogSlice;
}

const MODEL_ID = /^[A-Za-z0-9._:@-]{1,512}$/;
const CUSTOM_ID = /^[a-z]+(-[a-z]+)*\/[A-Za-z0-9._:@/-]{1,512}$/;
/** Deactivated mappings of a fixture are so from the beginning of time. */
const CLOCK: Clock = new ManualClock(0);
const DEACTIVATED_AT = '1970-01-01T00:00:00Z';

/** The catalogue that some slices make together. @throws FixtureFault for a model that two of them give, or a wrong id or price. */
export function sliceCatalog(slices: readonly WrittenSlice[]): Catalog {
  const models = new Map<string, CatalogModel>();
  for (const { document, below, slice } of slices) {
    const add = (at: Path, model: CatalogModel): void => {
      if (models.has(model.id)) throw new FixtureFault(document.placeOf(at), `The model "${model.id}" is given twice.`);
      models.set(model.id, model);
    };
    for (const [id, { aliases, providers }] of Object.entries(slice.models ?? {})) {
      const at = [...below, 'models', id];
      if (!MODEL_ID.test(id)) throw new FixtureFault(document.placeOf(at), `"${id}" is not a canonical model id.`);
      const names = listOf(aliases);
      const mappings = Object.entries(providers).map(([provider, written]) => {
        const charged = pricing(document, [...at, 'providers', provider], written);
        return sharedMapping(provider, id, written.externalId ?? id, names, charged);
      });
      add(at, toModel(id, names, mappings));
    }
    for (const [id, written] of Object.entries(slice.custom ?? {})) {
      const at = [...below, 'custom', id];
      if (!CUSTOM_ID.test(id))
        throw new FixtureFault(document.placeOf(at), `"${id}" is not <custom provider>/<model>.`);
      if (written.externalId !== undefined) {
        const place = document.placeOf([...at, 'externalId']);
        throw new FixtureFault(place, 'A custom model has one name, and none by its provider.');
      }
      add(at, toModel(id, [], [customMapping(id, pricing(document, at, written))]));
    }
  }
  const shared = [...models.values()].flatMap(({ mappings }) => mappings.filter(({ custom }) => !custom));
  const providers = new Set(shared.map(({ providerId }) => providerId));
  const listed = [...providers].map((id) => ({ id, name: id }));
  return catalogOf([{ date: '', providers: listed, models: [...models.values()] }], CLOCK);
}

const toModel = (id: string, aliases: readonly string[], mappings: readonly Mapping[]): CatalogModel => ({
  id,
  name: id,
  aliases,
  description: '',
  family: '',
  created: 0,
  mappings,
});

type Charged = Pick<Mapping, 'prices' | 'freeFlag' | 'deactivatedAt'>;

const sharedMapping = (
  providerId: string,
  modelId: string,
  externalId: string,
  aliases: readonly string[],
  charged: Charged,
): Mapping => ({
  ...TEXT_ONLY,
  ...charged,
  id: `${providerId}/${modelId}`,
  providerId,
  modelId,
  externalId,
  custom: false,
  names: mappingNames({ providerId, modelId, externalId }, aliases),
  providerNames: [providerId],
});

function customMapping(id: string, charged: Charged): Mapping {
  const slash = id.indexOf('/');
  const [providerId, modelId] = [id.slice(0, slash), id.slice(slash + 1)];
  return {
    ...TEXT_ONLY,
    ...charged,
    id,
    providerId,
    modelId,
    externalId: modelId,
    custom: true,
    names: [id],
    providerNames: ['custom', `custom:${providerId}`],
  };
}

function pricing(document: SourceDocument, at: Path, written: FixtureMapping): Charged {
  const { requestPrice, imagePrice, free = false, deactivated = false } = written;
  const prices = locating(
    document,
    at,
    (): Prices => ({
      ...tokenPrice('prompt', written, 'inputPricePerMillion', 'inputPrice'),
      ...tokenPrice('completion', written, 'outputPricePerMillion', 'outputPrice'),
      ...(requestPrice === undefined ? {} : { request: parseUsd(String(requestPrice), '/requestPrice') }),
      ...(imagePrice === undefined ? {} : { per_image: parseUsd(String(imagePrice), '/imagePrice') }),
    }),
  );
  return { prices, freeFlag: free, ...(deactivated ? { deactivatedAt: DEACTIVATED_AT } : {}) };
}

type TokenPriceField = 'inputPricePerMillion' | 'outputPricePerMillion' | 'inputPrice' | 'outputPrice';

/** A price under its name, or the older one that does not say its unit. @throws ApiError 400 where it has both */
function tokenPrice(
  price: 'prompt' | 'completion',
  written: FixtureMapping,
  field: TokenPriceField,
  olderField: TokenPriceField,
): Prices {
  if (written[field] !== undefined && written[olderField] !== undefined) {
    throw invalidRequest(`/${olderField} is the older name of ${field}: give one of them.`, `/${olderField}`);
  }
  const named = written[field] === undefined ? olderField : field;
  const amount = written[named];
  return amount === undefined ? {} : { [price]: parseUsdPerMillion(amount, `/${named}`) };
}
