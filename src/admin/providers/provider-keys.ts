import type { Endpoint } from '../../domain/address.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { type EncryptionKey, maskCredential, sealSecret } from '../../domain/provider.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  Deletion,
  ProviderKeyAnswer,
  ProviderKeyList,
  ProviderKeyPatch,
  ProviderKeyRecord,
} from '../../generated/types.ts';
import { optional } from '../../lib/collections.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/providers/provider-key-records.ts';
import { findProject, getProject } from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';
import { checkIsProvider, isSameServer, type KnownProviders, readBaseUrl } from './known-providers.ts';

const MAX_PROVIDER_KEYS = 100;

const EXPLANATIONS = [
  { at: /^\/label$/, must: 'must be a text of 1 to 256 characters' },
  { at: /^\/token$/, must: 'must be 1 to 4096 visible ASCII characters without blanks' },
  { at: /^\/position$/, must: 'must be a whole number from 1 to 100' },
];

const PATCH_EXPLANATIONS = [
  ...EXPLANATIONS,
  { at: /^\/provider$/, must: 'cannot be changed: a key belongs to the provider for which it was made' },
];

/** An unknown field may be a secret under another name, and a URL can hold one. */
const QUOTABLE = /^\/(label|provider|projectId|position|status)$/;

/** Inputs for a write of provider keys, apart from the database; `now` in epoch ms. */
export interface ProviderKeyWrite {
  readonly now: number;
  readonly encryptionKey: EncryptionKey;
  readonly catalog: KnownProviders;
  /** Private hosts that base URLs may name. */
  readonly allowPrivateUpstreams: readonly Endpoint[];
}

/**
 * Stores a customer's own credential, sealed; nothing gives it back. Shape and unknown provider 400, role 403, project 404.
 * @param body as `ProviderKeyCreate`, unchecked.
 */
export function createProviderKey(
  db: Database,
  actor: Actor,
  body: unknown,
  write: ProviderKeyWrite,
): ProviderKeyAnswer {
  const wanted = checkShape(validator('ProviderKeyCreate'), body, EXPLANATIONS, QUOTABLE);
  const { organizationId } = actor;
  const id = newId('pkey');
  return db.transaction(() => {
    checkManagesOrganization(actor);
    checkIsProvider(db, organizationId, wanted.provider, write.catalog);
    if (store.countProviderKeys(db, organizationId) >= MAX_PROVIDER_KEYS) {
      throw invalidRequest(`An organization has at most ${MAX_PROVIDER_KEYS} provider keys.`);
    }
    const key: store.NewProviderKey = {
      id,
      label: wanted.label,
      provider: wanted.provider,
      projectId: projectOf(db, actor, wanted.projectId ?? null),
      baseUrl: baseUrlOf(wanted.baseUrl ?? null, write),
      ...sealed(wanted.token, id, write),
      status: wanted.status ?? 'active',
    };
    store.insertProviderKey(db, organizationId, key, write.now);
    if (wanted.position !== undefined) store.placeProviderKey(db, organizationId, id, wanted.position);
    const made = answer(db, actor, id);
    recordChange(db, actor, 'provider_key', 'create', { before: null, after: made.providerKey }, write.now);
    return made;
  });
}

/** A page of the organization's provider keys, newest first; of one provider when it is named. 403 for developers. */
export function listProviderKeys(
  db: Database,
  actor: Actor,
  request: PageRequest & { readonly provider?: string | undefined },
): ProviderKeyList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listProviderKeys(db, actor.organizationId, request);
  return { providerKeys: items.map((key) => viewProviderKey(db, key)), nextCursor };
}

/** One provider key; 404 when there is none, 403 for developers. */
export function getProviderKey(db: Database, actor: Actor, id: string): ProviderKeyAnswer {
  checkManagesOrganization(actor);
  return answer(db, actor, id);
}

/**
 * Changes a provider key; a new token is sealed in place of the old one.
 * @param body as `ProviderKeyPatch`, unchecked.
 */
export function changeProviderKey(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  write: ProviderKeyWrite,
): ProviderKeyAnswer {
  const patch = checkShape(validator('ProviderKeyPatch'), body, PATCH_EXPLANATIONS, QUOTABLE);
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const key = store.getProviderKey(db, actor.organizationId, id);
    const changes = changesOf(db, actor, key, patch, write);
    store.updateProviderKey(db, actor.organizationId, id, changes, write.now);
    if (patch.position !== undefined) store.placeProviderKey(db, actor.organizationId, id, patch.position);
    const changed = answer(db, actor, id);
    const change = { before: viewProviderKey(db, key), after: changed.providerKey };
    recordChange(db, actor, 'provider_key', 'update', change, write.now);
    return changed;
  });
}

/** Deletes a provider key: no call uses it from the next one on, and its secret is forgotten. */
export function deleteProviderKey(db: Database, actor: Actor, id: string, now: number): Deletion {
  checkManagesOrganization(actor);
  return db.transaction(() => {
    const { providerKey: before } = answer(db, actor, id);
    store.deleteProviderKey(db, actor.organizationId, id, now);
    recordChange(db, actor, 'provider_key', 'delete', { before, after: null }, now);
    return { id, deleted: true };
  });
}

function changesOf(
  db: Database,
  actor: Actor,
  key: store.ProviderKeyRecord,
  patch: ProviderKeyPatch,
  write: ProviderKeyWrite,
): store.ProviderKeyChanges {
  const { label, token, projectId, status } = patch;
  const baseUrl = patch.baseUrl === undefined ? undefined : baseUrlOf(patch.baseUrl, write);
  if (baseUrl !== undefined && token === undefined) checkStays(key.baseUrl, baseUrl);
  return {
    ...(label === undefined ? {} : { label }),
    ...(token === undefined ? {} : sealed(token, key.id, write)),
    ...(projectId === undefined ? {} : { projectId: projectOf(db, actor, projectId) }),
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(status === undefined ? {} : { status }),
  };
}

/** A person who changes a key's address could read its secret at the new one, so they must know the secret. */
function checkStays(before: string | null, after: string | null): void {
  if (before === after || (before !== null && after !== null && isSameServer(before, after))) return;
  throw invalidRequest(
    'A base URL on another server needs the token again: a stored secret is not sent there.',
    '/token',
  );
}

const baseUrlOf = (text: string | null, { allowPrivateUpstreams }: ProviderKeyWrite): string | null =>
  text === null ? null : readBaseUrl(text, '/baseUrl', allowPrivateUpstreams);

const projectOf = (db: Database, { organizationId }: Actor, id: string | null): string | null =>
  id === null ? null : getProject(db, organizationId, id).id;

const sealed = (token: string, id: string, { encryptionKey }: ProviderKeyWrite) => ({
  secret: sealSecret(token, id, encryptionKey),
  mask: maskCredential(token),
});

const answer = (db: Database, { organizationId }: Actor, id: string): ProviderKeyAnswer => ({
  providerKey: viewProviderKey(db, store.getProviderKey(db, organizationId, id)),
});

/** A provider key as admin JSON shows it: with a mask of its secret. */
export const viewProviderKey = (db: Database, key: store.ProviderKeyRecord): ProviderKeyRecord => ({
  id: key.id,
  createdAt: formatTime(key.createdAt),
  updatedAt: formatTime(key.updatedAt),
  label: key.label,
  provider: key.provider,
  projectId: key.projectId,
  projectName: optional(key.projectId, (id) => findProject(db, key.organizationId, id)?.name ?? null),
  baseUrl: key.baseUrl,
  maskedToken: key.mask,
  position: key.position,
  status: key.status,
});
