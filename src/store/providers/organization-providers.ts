import type { Mapping } from '../../domain/model.ts';
import type { OrganizationProviders } from '../../domain/provider.ts';
import { type Database, type Freshness, FreshReads } from '../db/database.ts';
import { bind, build, prepare } from '../db/sql.ts';
import { toAlias, toTagSet } from './custom-names.ts';
import {
  type CustomModelRecord,
  type CustomProviderRecord,
  toCustomModel,
  toCustomProvider,
} from './custom-provider-records.ts';
import { toProviderKey } from './provider-key-records.ts';

/** Most organizations whose providers are remembered. */
const MAX_ORGANIZATIONS = 1000;

/** Reads an organization's own providers; the same object for as long as nothing changes. For the hot path. */
export function createOrganizationProviders(
  db: Database,
  freshness: Freshness,
): (organizationId: string) => OrganizationProviders {
  const known = new FreshReads<OrganizationProviders>(freshness, MAX_ORGANIZATIONS);
  const read = prepareOrganizationProviders(db);
  return (organizationId) => {
    const remembered = known.get(organizationId);
    if (remembered !== undefined) return remembered;
    const epoch = freshness.lastEpoch();
    const providers = read(organizationId);
    known.set(organizationId, providers, epoch);
    return providers;
  };
}

/**
 * Reads it, whatever was read before. Some statements in one transaction: a key must never meet a provider of its name that came
 * later.
 */
export function prepareOrganizationProviders(db: Database): (organizationId: string) => OrganizationProviders {
  const organizationId = bind<string>('organizationId');
  const providers = prepare(
    db.connection,
    build
      .selectFrom('custom_providers')
      .selectAll()
      .where('organizationId', '=', organizationId)
      .where('deletedAt', 'is', null)
      .orderBy('id')
      .compile(),
  );
  const models = prepare(
    db.connection,
    build
      .selectFrom('custom_models')
      .selectAll()
      .where('organizationId', '=', organizationId)
      .where('deletedAt', 'is', null)
      .where('status', '=', 'active')
      .compile(),
  );
  const keys = prepare(
    db.connection,
    build
      .selectFrom('provider_keys')
      .selectAll()
      .where('organizationId', '=', organizationId)
      .where('deletedAt', 'is', null)
      .where('status', '=', 'active')
      .orderBy('position')
      .orderBy('id')
      .compile(),
  );
  const tagSets = prepare(
    db.connection,
    build.selectFrom('tag_sets').selectAll().where('organizationId', '=', organizationId).orderBy('id').compile(),
  );
  const aliases = prepare(
    db.connection,
    build.selectFrom('aliases').selectAll().where('organizationId', '=', organizationId).orderBy('id').compile(),
  );
  const read = (organization: { organizationId: string }): OrganizationProviders => {
    const custom = providers.all(organization).map(toCustomProvider);
    return {
      providers: custom,
      mappings: toMappings(custom, models.all(organization).map(toCustomModel)),
      keys: keys.all(organization).map(toProviderKey),
      tagSets: tagSets.all(organization).map(toTagSet),
      aliases: aliases.all(organization).map(toAlias),
    };
  };
  const transaction = db.connection.transaction(read);
  return (id) => transaction.deferred({ organizationId: id });
}

function toMappings(providers: readonly CustomProviderRecord[], models: readonly CustomModelRecord[]): Mapping[] {
  const byId = new Map(providers.map((provider) => [provider.id, provider]));
  const mappings: Mapping[] = [];
  for (const model of models) {
    const provider = byId.get(model.customProviderId);
    if (provider !== undefined) mappings.push(toMapping(provider, model));
  }
  return mappings.sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** A custom model is known by one name, `<custom>/<model>` (policy/reference.md, "IAM rules"). */
function toMapping({ name, updatedAt }: CustomProviderRecord, model: CustomModelRecord): Mapping {
  const id = `${name}/${model.model}`;
  return {
    id,
    providerId: name,
    modelId: model.model,
    externalId: model.model,
    custom: true,
    revision: `${model.id} ${updatedAt}`,
    createdAt: model.createdAt,
    names: [id],
    providerNames: ['custom', `custom:${name}`],
    prices: model.prices,
    freeFlag: false,
    ...(model.contextLength === null ? {} : { contextLength: model.contextLength }),
    ...(model.maxOutput === null ? {} : { maxOutput: model.maxOutput }),
    ...(model.supportedParameters === null ? {} : { supportedParameters: model.supportedParameters }),
    inputModalities: model.inputModalities,
    outputModalities: model.outputModalities,
    streaming: model.streaming,
    vision: model.vision,
    tools: model.tools,
    parallelToolCalls: model.parallelToolCalls,
    reasoning: model.reasoning,
    jsonOutput: model.jsonOutput,
    structuredOutputs: model.structuredOutputs,
    stability: 'stable',
    tags: [],
  };
}
