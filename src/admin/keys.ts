import {
  type ApiKey,
  checkRenamable,
  checkRollable,
  disable,
  enable,
  reactivate,
  remove,
  setLimits,
} from '../domain/api-key.ts';
import { checkShape } from '../domain/check-shape.ts';
import { invalidRequest, permissionDenied } from '../domain/errors.ts';
import { newId } from '../domain/id.ts';
import { generateSecret, hashSecret, maskSecret, type Pepper } from '../domain/secret.ts';
import type { Deletion, KeyAnswer, KeyCreate, KeyList, KeyPatch, KeyRecord } from '../generated/types.ts';
import { validateKeyCreate, validateKeyPatch } from '../generated/validators.js';
import type { Database } from '../store/database.ts';
import * as store from '../store/keys.ts';
import { findMember, getMember } from '../store/members.ts';
import type { PageRequest } from '../store/page.ts';
import { getProject } from '../store/tenants.ts';
import { type Actor, checkMakesKeysFor, checkSeesKeyOf, seesAllKeys } from './actor.ts';
import { NO_LIMITS, namesLimits, newLimits } from './key-limits.ts';
import { viewKey } from './key-view.ts';

const AMOUNT = 'must be null or an amount in USD: a plain decimal string such as "12.5", at most 9000000';

const EXPLANATIONS = [
  { at: /^\/(usageLimit|periodUsageLimit)$/, must: AMOUNT },
  { at: /^\/periodUsageDurationValue$/, must: 'must be null or a whole number of at least 1 and at most 8760' },
  { at: /^\/periodUsageDurationUnit$/, must: 'must be null or one of hour, day, week, month' },
  { at: /^\/description$/, must: 'must be a text of at most 256 characters, or null' },
  { at: /^\/(ttl|expiresAt)$/, must: 'cannot be set here: the dashboard and the command line set expirations' },
];

/** What a new secret needs: the time in epoch ms, and the pepper under which it is hashed. */
export interface SecretWrite {
  readonly now: number;
  readonly pepper: Pepper;
}

/**
 * Makes a gateway key; the answer alone carries the secret, as `token`. Shape 400, foreign project or owner 404.
 * @param body as `KeyCreate`, unchecked. @param expiresAt epoch ms; not in the master API.
 */
export function createKey(
  db: Database,
  actor: Actor,
  body: unknown,
  { now, pepper, expiresAt = null }: SecretWrite & { readonly expiresAt?: number | null },
): KeyAnswer {
  const wanted = checkShape(validateKeyCreate, body, EXPLANATIONS);
  const { usageLimit, period } = newLimits(wanted, NO_LIMITS);
  return db.transaction(() => {
    const { token, ...secret } = newSecret(pepper);
    const key: store.NewKey = {
      ...secret,
      id: newId('key'),
      organizationId: actor.organizationId,
      projectId: getProject(db, actor.organizationId, wanted.projectId).id,
      createdBy: ownerOf(db, actor, wanted),
      description: wanted.description ?? '',
      kind: 'regular',
      expiresAt,
      usageLimit,
      periodUsageLimit: period?.limit ?? null,
      periodUsageDurationValue: period?.value ?? null,
      periodUsageDurationUnit: period?.unit ?? null,
    };
    return { key: { ...view(db, store.insertKey(db, key, now), now), token } };
  });
}

export interface KeyListRequest extends PageRequest {
  readonly projectId?: string | undefined;
}

/** A page of the keys that the actor sees, newest first; `now` in epoch ms. */
export function listKeys(db: Database, actor: Actor, { projectId, ...page }: KeyListRequest, now: number): KeyList {
  const createdBy = seesAllKeys(actor) || actor.kind === 'cli' ? undefined : actor.memberId;
  const { items, nextCursor } = store.listKeys(db, actor.organizationId, { projectId, createdBy }, page);
  const present = new Map<string, boolean>();
  for (const { createdBy: owner } of items) {
    if (!present.has(owner)) present.set(owner, findMember(db, actor.organizationId, owner) !== undefined);
  }
  return { keys: items.map((key) => viewKey(key, present.get(key.createdBy) === true, now)), nextCursor };
}

/** One key; 404 when there is none that the actor sees. */
export const getKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer => ({
  key: view(db, visibleKey(db, actor, id), now),
});

/**
 * Changes a key's description, limits or status; nothing at all when any of it is refused.
 * @param body as `KeyPatch`, unchecked.
 */
export function changeKey(db: Database, actor: Actor, id: string, body: unknown, now: number): KeyAnswer {
  const patch = checkShape(validateKeyPatch, body, EXPLANATIONS);
  return transition(db, actor, id, now, (key) => changesOf(key, patch, now));
}

export const disableKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer =>
  transition(db, actor, id, now, (key) => disable(key, now));

/** 400 for an expired key: it must be reactivated. */
export const enableKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer =>
  transition(db, actor, id, now, (key) => enable(key, now));

/** Gives an expired key a new expiration (epoch ms). Not in the master API. */
export const reactivateKey = (db: Database, actor: Actor, id: string, expiresAt: number, now: number): KeyAnswer =>
  transition(db, actor, id, now, (key) => reactivate(key, expiresAt, now));

/** Replaces a key's secret, and nothing else; the answer carries the new one as `token`. Not in the master API. */
export function rollKey(db: Database, actor: Actor, id: string, { now, pepper }: SecretWrite): KeyAnswer {
  const { token, ...secret } = newSecret(pepper);
  const { key } = transition(db, actor, id, now, (rolled) => {
    checkRollable(rolled);
    return secret;
  });
  return { key: { ...key, token } };
}

export function deleteKey(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    const key = visibleKey(db, actor, id);
    store.updateKey(db, actor.organizationId, key.id, remove(key, now), now);
    return { id: key.id, deleted: true };
  });
}

function visibleKey(db: Database, actor: Actor, id: string): store.KeyRecord {
  const key = store.getKey(db, actor.organizationId, id);
  checkSeesKeyOf(actor, key.createdBy);
  return key;
}

function transition(
  db: Database,
  actor: Actor,
  id: string,
  now: number,
  changes: (key: store.KeyRecord) => store.KeyChanges,
): KeyAnswer {
  return db.transaction(() => {
    const key = visibleKey(db, actor, id);
    return { key: view(db, store.updateKey(db, actor.organizationId, key.id, changes(key), now), now) };
  });
}

function changesOf(key: ApiKey, patch: KeyPatch, now: number): store.KeyChanges {
  if (patch.description !== undefined) checkRenamable(key);
  return {
    ...(patch.description === undefined ? {} : { description: patch.description ?? '' }),
    ...(namesLimits(patch) ? limitsOf(key, patch) : {}),
    ...(patch.status === undefined ? {} : patch.status === 'active' ? enable(key, now) : disable(key, now)),
  };
}

/** A platform key makes no gateway calls, so a limit on it would never be enforced. */
function limitsOf(key: ApiKey, patch: KeyPatch): store.KeyChanges {
  if (key.kind === 'platform_secret') throw permissionDenied('A platform key cannot be limited.');
  return setLimits(key, newLimits(patch, key));
}

/** The member who made the master key, or the one that is named. The command line always names one. */
function ownerOf(db: Database, actor: Actor, { createdBy }: KeyCreate): string {
  if (createdBy === undefined) {
    if (actor.kind === 'master_key') return actor.memberId;
    throw invalidRequest('/createdBy is missing.', '/createdBy');
  }
  const owner = getMember(db, actor.organizationId, createdBy).id;
  checkMakesKeysFor(actor, owner);
  return owner;
}

function newSecret(pepper: Pepper): store.StoredSecret & { readonly token: string } {
  const token = generateSecret('gateway');
  return { token, secretHash: hashSecret(token, pepper), pepperId: pepper.id, mask: maskSecret(token) };
}

const view = (db: Database, key: store.KeyRecord, now: number): KeyRecord =>
  viewKey(key, findMember(db, key.organizationId, key.createdBy) !== undefined, now);
