import { canonicalModelId, type UpstreamConfig, type UpstreamModel } from '../config/upstream-config.ts';
import { type Mapping, mappingNames, TEXT_ONLY } from '../domain/model.ts';
import type { CatalogData } from './catalog-file.ts';
import type { CatalogModel } from './catalog-model.ts';

/** What the data files say that a model gives, such as `image`; undefined for a model that they do not know. */
export type KnownOutputs = (modelId: string) => readonly string[] | undefined;

/**
 * The catalogue of an upstream that the environment names. Of its models nothing is known but the id, and the prices if the
 * operator states them: so they claim no capability beyond text. One that has the id of a known model gives what that one does.
 * @param date of the catalogue, `YYYY-MM-DD`, by which each is known to have been there
 */
export function upstreamData(upstream: UpstreamConfig, knownOutputs: KnownOutputs, date: string): CatalogData {
  const created = Date.parse(date) / 1000;
  return {
    date: '',
    providers: [{ id: upstream.name, name: upstream.name }],
    models: upstream.models.map((model) => upstreamModel(upstream.name, model, knownOutputs, created)),
  };
}

/**
 * Canonical model ids hold no `/`: an upstream id that does stands under its text with `--` instead, and as itself behind
 * the provider. It is no bare name: there its first part would name a provider.
 */
function upstreamModel(
  providerId: string,
  model: UpstreamModel,
  knownOutputs: KnownOutputs,
  created: number,
): CatalogModel {
  const { id: externalId } = model;
  const id = canonicalModelId(externalId);
  const mapping = upstreamMapping(providerId, id, model);
  const outputModalities = knownOutputs(id) ?? mapping.outputModalities;
  return {
    id,
    name: externalId,
    aliases: [],
    description: `${externalId} at ${providerId}.`,
    family: providerId,
    created,
    mappings: [{ ...mapping, outputModalities }],
  };
}

function upstreamMapping(
  providerId: string,
  modelId: string,
  { id: externalId, prices, ...limits }: UpstreamModel,
): Mapping {
  return {
    id: `${providerId}/${modelId}`,
    providerId,
    modelId,
    externalId,
    custom: false,
    names: mappingNames({ providerId, modelId, externalId }, []),
    providerNames: [providerId],
    prices,
    freeFlag: false,
    ...TEXT_ONLY,
    ...limits,
  };
}
