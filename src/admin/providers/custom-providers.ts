import { fieldFault } from '../../config/upstreams.ts';
import type { Endpoint } from '../../domain/address.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  CustomProviderAnswer,
  CustomProviderList,
  CustomProviderRecord,
  Deletion,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/custom-provider-records.ts';
import { listCustomModels } from '../../store/providers/custom-provider-records.ts';
import { keysOfProvider } from '../../store/providers/provider-key-records.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';
import { MAX_CUSTOM_MODELS, viewCustomModel } from './custom-models.ts';
import { checkNameIsFree, isSameServer, type KnownProviders, readBaseUrl } from './known-providers.ts';
import { viewProviderKey } from './provider-keys.ts';
import { removeTagsOf } from './tag-sets.ts';

const validateCustomProviderPatch = validator('CustomProviderPatch');

const MAX_CUSTOM_PROVIDERS = 50;

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be words of small letters joined by single hyphens, at most 63 characters' },
  { at: /^\/baseUrl$/, must: 'must be a URL of at most 2048 characters' },
  { at: /^\/fields\/\d+$/, must: 'must be the name of a JSON field: at most 64 letters, digits and `_`' },
];

const PATCH_EXPLANATIONS = [
  ...EXPLANATIONS.slice(1),
  { at: /^\/name$/, must: 'cannot be changed: requests and rules mean the provider by it' },
];

/** A URL can hold a credential. */
const QUOTABLE = /^(?!\/baseUrl$)/;

/** Inputs for a write of custom providers, apart from the database; `now` in epoch ms. */
export interface CustomProviderWrite {
  readonly now: number;
  readonly catalog: KnownProviders;
  /** Private hosts that base URLs may name. */
  readonly allowPrivateUpstreams: readonly Endpoint[];
}

/**
 * Adds a provider of the organization's own. Shape, a name that is taken and a private address 400, role 403.
 * @param body as `CustomProviderCreate`, unchecked.
 */
export function createCustomProvider(
  db: Database,
  actor: Actor,
  body: unknown,
  write: CustomProviderWrite,
): CustomProviderAnswer {
  const wanted = checkShape(validator('CustomProviderCreate'), body, EXPLANATIONS, QUOTABLE);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    checkNameIsFree(db, organizationId, wanted.name, write.catalog);
    if (store.countCustomProviders(db, organizationId) >= MAX_CUSTOM_PROVIDERS) {
      throw invalidRequest(`An organization has at most ${MAX_CUSTOM_PROVIDERS} custom providers.`);
    }
    const provider: store.NewCustomProvider = {
      id: newId('prov'),
      name: wanted.name,
      wire: wanted.wire ?? 'openai',
      baseUrl: readBaseUrl(wanted.baseUrl, '/baseUrl', write.allowPrivateUpstreams),
      keyless: wanted.keyless ?? false,
      fields: checkFields(wanted.fields ?? []),
    };
    const customProvider = view(store.insertCustomProvider(db, organizationId, provider, write.now));
    recordChange(db, actor, 'custom_provider', 'create', { before: null, after: customProvider }, write.now);
    return { customProvider };
  });
}

/** A page of the organization's custom providers, newest first; 403 for developers. */
export function listCustomProviders(db: Database, actor: Actor, page: PageRequest): CustomProviderList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listCustomProviders(db, actor.organizationId, page);
  return { customProviders: items.map(view), nextCursor };
}

/** One custom provider; 404 when there is none, 403 for developers. */
export function getCustomProvider(db: Database, actor: Actor, id: string): CustomProviderAnswer {
  checkManagesOrganization(actor);
  return { customProvider: view(store.getCustomProvider(db, actor.organizationId, id)) };
}

/**
 * Changes how a custom provider is called.
 * @param body as `CustomProviderPatch`, unchecked.
 */
export function changeCustomProvider(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  write: CustomProviderWrite,
): CustomProviderAnswer {
  const { baseUrl: text, ...patch } = checkShape(validateCustomProviderPatch, body, PATCH_EXPLANATIONS, QUOTABLE);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const provider = store.getCustomProvider(db, organizationId, id);
    const baseUrl = text === undefined ? undefined : readBaseUrl(text, '/baseUrl', write.allowPrivateUpstreams);
    if (baseUrl !== undefined) checkSecretsStay(db, provider, baseUrl);
    if (patch.fields !== undefined) checkFields(patch.fields);
    const changes = { ...patch, ...(baseUrl === undefined ? {} : { baseUrl }) };
    const customProvider = view(store.updateCustomProvider(db, organizationId, id, changes, write.now));
    const change = { before: view(provider), after: customProvider };
    recordChange(db, actor, 'custom_provider', 'update', change, write.now);
    return { customProvider };
  });
}

/** Deletes a custom provider with its models and its provider keys: no call reaches them from the next one on. */
export function deleteCustomProvider(db: Database, actor: Actor, id: string, now: number): Deletion {
  checkManagesOrganization(actor);
  return db.transaction(() => {
    const provider = store.getCustomProvider(db, actor.organizationId, id);
    recordWhatGoesWith(db, actor, provider, now);
    store.deleteCustomProvider(db, actor.organizationId, id, now);
    recordChange(db, actor, 'custom_provider', 'delete', { before: view(provider), after: null }, now);
    return { id, deleted: true };
  });
}

/** Each of the provider's models, keys and tags has an entry of its own: who looks for one of them finds its end. */
function recordWhatGoesWith(db: Database, actor: Actor, provider: store.CustomProviderRecord, now: number): void {
  const { id, organizationId, name } = provider;
  const all = { customProviderId: id, limit: MAX_CUSTOM_MODELS };
  for (const model of listCustomModels(db, organizationId, all).items) {
    recordChange(db, actor, 'custom_model', 'delete', { before: viewCustomModel(model, name), after: null }, now);
  }
  for (const key of keysOfProvider(db, organizationId, `custom:${name}`)) {
    recordChange(db, actor, 'provider_key', 'delete', { before: viewProviderKey(db, key), after: null }, now);
  }
  removeTagsOf(db, actor, (target) => target.startsWith(`${name}/`), now);
}

/** A person who changes a provider's address could read its keys at the new one. */
function checkSecretsStay(db: Database, provider: store.CustomProviderRecord, baseUrl: string): void {
  if (isSameServer(provider.baseUrl, baseUrl)) return;
  const keys = keysOfProvider(db, provider.organizationId, `custom:${provider.name}`);
  if (keys.every((key) => key.baseUrl !== null)) return;
  throw invalidRequest(
    'The provider has keys, and a stored secret is not sent to another server: delete them, or give them a base URL of their own.',
    '/baseUrl',
  );
}

/** @throws ApiError 400 for a field that would open a way around rules and spend caps */
function checkFields(fields: readonly string[]): readonly string[] {
  for (const [position, name] of fields.entries()) {
    const fault = fieldFault(name);
    if (fault !== undefined) throw invalidRequest(`${fault} It cannot be let through.`, `/fields/${position}`);
  }
  return fields;
}

const view = (provider: store.CustomProviderRecord): CustomProviderRecord => ({
  id: provider.id,
  createdAt: formatTime(provider.createdAt),
  updatedAt: formatTime(provider.updatedAt),
  name: provider.name,
  wire: provider.wire,
  baseUrl: provider.baseUrl,
  keyless: provider.keyless,
  fields: [...provider.fields],
});
