import {
  type ApiKey,
  checkRenamable,
  checkRollable,
  disable,
  enable,
  expire,
  type KeyKind,
  keyState,
  reactivate,
  remove,
  setEnd,
  setLimits,
} from '../../domain/api-key.ts';
import { checkShape } from '../../domain/check-shape.ts';
import { type ApiError, invalidField, invalidRequest, permissionDenied } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { isCapped, type MinuteLimits } from '../../domain/limits.ts';
import { sortedTags, TAG_SHAPE } from '../../domain/provider.ts';
import { formatTime } from '../../domain/time.ts';
import type { Deletion, KeyAnswer, KeyCreate, KeyList, KeyPatch, KeyRecord } from '../../generated/types.ts';
import { optional } from '../../lib/collections.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import type { Store } from '../../store/store.ts';
import * as store from '../../store/tenants/key-records.ts';
import { listExpiredKeys, updateKey } from '../../store/tenants/key-records.ts';
import { findMember, getMember } from '../../store/tenants/member-records.ts';
import { getProject } from '../../store/tenants/tenants.ts';
import {
  type Actor,
  checkMakesKeysFor,
  checkSeesKeyOf,
  checkTagsKeys,
  type Done,
  isDeveloper,
  recordChange,
  seesAllKeys,
} from '../audit/audit-trail.ts';
import {
  boundKey,
  checkKeepsMinuteLimits,
  checkNewEnd,
  checkNewLimits,
  getNewKeyBounds,
  LIMIT_EXPLANATIONS,
  leastMinuteLimits,
  MINUTE_LIMIT_EXPLANATION,
  minuteLimits,
  NO_LIMITS,
  namesLimits,
  newLimits,
  viewLimits,
} from './key-limits.ts';
import { newSecret, type SecretWrite } from './new-secret.ts';
import { endDueGrants, endGrantsFrom, endGrantsOfOldSecret, endRolledGrants, type RollEnds } from './oauth-grants.ts';

const EXPLANATIONS = [
  ...LIMIT_EXPLANATIONS,
  MINUTE_LIMIT_EXPLANATION,
  { at: /^\/description$/, must: 'must be a text of at most 256 characters, or null' },
  { at: /^\/tags\/\d+$/, must: TAG_SHAPE },
  { at: /^\/(ttl|expiresAt)$/, must: 'cannot be set here: the dashboard and the command line set expirations' },
];

/**
 * Makes a gateway key; the answer alone carries the secret, as `token`. Shape 400, more than a developer may have 400, tags by a
 * developer 403, foreign project or owner 404.
 * @param body as `KeyCreate`, unchecked. @param expiresAt epoch ms, null: never; not in the master API.
 */
export function createKey(
  db: Database,
  actor: Actor,
  body: unknown,
  { now, pepper, expiresAt: wantedEnd }: SecretWrite & { readonly expiresAt?: number | null },
): KeyAnswer {
  const wanted = checkShape(validator('KeyCreate'), body, EXPLANATIONS);
  const limits = newLimits(wanted, NO_LIMITS);
  const { tags = [] } = wanted;
  if (tags.length > 0) checkTagsKeys(actor);
  return db.transaction(() => {
    const bounds = getNewKeyBounds(db, actor, now);
    const { usageLimit, period, expiresAt } = boundKey(bounds, { named: wanted, limits, expiresAt: wantedEnd }, now);
    const { token, ...secret } = newSecret('gateway', pepper);
    const createdBy = ownerOfNewKey(db, actor, wanted.createdBy);
    const key: store.NewKey = {
      ...secret,
      id: newId('key'),
      organizationId: actor.organizationId,
      projectId: getProject(db, actor.organizationId, wanted.projectId).id,
      createdBy,
      description: wanted.description ?? '',
      kind: 'regular',
      expiresAt,
      tagsJson: JSON.stringify(sortedTags(tags)),
      usageLimit,
      periodUsageLimit: period?.limit ?? null,
      periodUsageDurationValue: period?.value ?? null,
      periodUsageDurationUnit: period?.unit ?? null,
      periodUsageAlignment: period?.alignment ?? null,
      limitedBySelf: bounds === undefined ? 0 : 1,
      sharesLimitsOf: bounds?.shared?.id ?? null,
      ...minuteLimitsOfNewKey(db, actor, createdBy, wanted),
    };
    const made = viewStoredKey(db, store.insertKey(db, key, now), now);
    recordChange(db, actor, 'key', 'create', { before: null, after: made }, now);
    return { key: { ...made, token } };
  });
}

/**
 * A developer's new key has at most what the most limited of the keys has that others limited for them: of those that are there, else of
 * those that were, so that no one deletes a key to be rid of its limit.
 */
function minuteLimitsOfNewKey(db: Database, actor: Actor, owner: string, wanted: KeyCreate): Partial<MinuteLimits> {
  if (!isDeveloper(actor)) return minuteLimits(wanted);
  const keys = store
    .listKeysOfMember(db, actor.organizationId, owner)
    .filter(({ limitedBySelf }) => limitedBySelf === 0);
  const present = keys.filter(({ deletedAt }) => deletedAt === null);
  const least = leastMinuteLimits(present.length > 0 ? present : keys);
  checkKeepsMinuteLimits(actor, wanted, least);
  return { ...least, ...minuteLimits(wanted) };
}

/** The kinds that a list of keys can hold; platform keys have their own. */
export const LISTED_KINDS = ['regular', 'playground'] as const;
export type ListedKind = (typeof LISTED_KINDS)[number];

export interface KeyListRequest extends PageRequest {
  readonly projectId?: string | undefined;
  /** Default: regular keys. Playground keys, one for every member and project, would bury them. */
  readonly kind?: KeyKind | undefined;
  /** A member; default: everyone whose keys the actor sees. */
  readonly createdBy?: string | undefined;
}

/** A page of the keys that the actor sees, newest first; `now` in epoch ms. */
export function listKeys(db: Database, actor: Actor, request: KeyListRequest, now: number): KeyList {
  const { projectId, kind = 'regular', createdBy: wanted, ...page } = request;
  const createdBy = seesAllKeys(actor) || actor.kind === 'cli' ? wanted : actor.memberId;
  const { items, nextCursor } = store.listKeys(db, actor.organizationId, { projectId, createdBy, kind }, page);
  const emails = new Map<string, string | undefined>();
  for (const { createdBy: owner } of items) {
    if (!emails.has(owner)) emails.set(owner, findMember(db, actor.organizationId, owner)?.email);
  }
  return { keys: items.map((key) => viewKey(key, emails.get(key.createdBy), now)), nextCursor };
}

/** One key; 404 when there is none that the actor sees. */
export const getKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer => ({
  key: viewStoredKey(db, visibleKey(db, actor, id), now),
});

/**
 * Changes a key's description, tags, limits or status; nothing at all when any of it is refused.
 * @param body as `KeyPatch`, unchecked.
 */
export function changeKey(db: Database, actor: Actor, id: string, body: unknown, now: number): KeyAnswer {
  const patch = checkShape(validator('KeyPatch'), body, EXPLANATIONS);
  if (patch.tags !== undefined) checkTagsKeys(actor);
  return transition(db, actor, id, nameOf(patch), now, (key) => {
    checkKeepsMinuteLimits(actor, patch, key);
    return changesOf(db, actor, key, patch, now);
  });
}

/** Disabling or deleting a key ends the secret that an overlap keeps: it does not come back with the key. */
const ONE_SECRET: store.KeyChanges = { previousSecretEndsAt: null };

export const disableKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer =>
  transition(db, actor, id, 'disable', now, (key) => ({ ...disable(key, now), ...ONE_SECRET }));

/** 400 for an expired key: it must be reactivated. */
export const enableKey = (db: Database, actor: Actor, id: string, now: number): KeyAnswer =>
  transition(db, actor, id, 'enable', now, (key) => enable(key, now));

/** Gives an expired key a new expiration (epoch ms). Not in the master API. */
export const reactivateKey = (db: Database, actor: Actor, id: string, expiresAt: number, now: number): KeyAnswer =>
  transition(db, actor, id, 'reactivate', now, (key) => {
    checkNewEnd(db, actor, key, expiresAt, now);
    return reactivate(key, expiresAt, now);
  });

/** Gives a key that has not expired another end (epoch ms; null: none). Not in the master API. */
export const changeKeyEnd = (
  db: Database,
  actor: Actor,
  id: string,
  expiresAt: number | null,
  now: number,
): KeyAnswer =>
  transition(db, actor, id, 'update', now, (key) => {
    checkNewEnd(db, actor, key, expiresAt, now);
    return setEnd(key, expiresAt, now);
  });

/** Longest overlap, in ms (src/admin/README.md, "rolling with an overlap"). */
const MAX_OVERLAP = 7 * 86_400_000;

/** Options for rolling a key. */
interface Roll extends SecretWrite {
  /** Epoch ms: until then the present secret is accepted too. Without it, it ends at once, as one that an earlier roll kept does. */
  readonly oldEndsAt?: number | null;
  /** Which applications end with the old secret. */
  readonly ends?: RollEnds;
}

/**
 * Replaces a key's secret, and ends what the old one made: the answer carries the new one as `token`, and the applications that end and
 * those that go on. Not in the master API.
 */
export function rollKey(
  db: Database,
  actor: Actor,
  id: string,
  { now, pepper, oldEndsAt = null, ends = 'registered' }: Roll,
): KeyAnswer {
  if (oldEndsAt !== null && oldEndsAt - now > MAX_OVERLAP) {
    throw invalidRequest('An overlap is at most 7 days.', '/overlap');
  }
  const { token, ...secret } = newSecret('gateway', pepper);
  return db.transaction(() => {
    const { key } = transition(db, actor, id, 'roll', now, (rolled) => {
      checkRollable(rolled);
      return { ...secret, previousSecretEndsAt: oldEndsAt };
    });
    const applications = endRolledGrants(db, actor, key.id, ends, { oldEndsAt, now });
    return { key: { ...key, token }, applications };
  });
}

/** Deletes a key, and ends the applications that act with it. */
export function deleteKey(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    const key = visibleKey(db, actor, id);
    const before = viewStoredKey(db, key, now);
    store.updateKey(db, actor.organizationId, key.id, { ...remove(key, now), ...ONE_SECRET }, now);
    recordChange(db, actor, 'key', 'delete', { before, after: null }, now);
    endGrantsFrom(db, actor, { keyId: key.id }, now);
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
  done: Done<'key'>,
  now: number,
  changes: (key: store.KeyRecord) => store.KeyChanges,
): KeyAnswer {
  return db.transaction(() => {
    const key = visibleKey(db, actor, id);
    const before = viewStoredKey(db, key, now);
    const changed = changes(key);
    const after = viewStoredKey(db, store.updateKey(db, actor.organizationId, key.id, changed, now), now);
    recordChange(db, actor, 'key', done, { before, after }, now);
    // A roll tells which ones it ends.
    if (changed.previousSecretEndsAt === null && done !== 'roll') endGrantsOfOldSecret(db, actor, key.id, now);
    return { key: after };
  });
}

/** A change of the status alone is what the dashboard and the command line call it. */
function nameOf({ status, ...others }: KeyPatch): Done<'key'> {
  if (status === undefined || Object.keys(others).length > 0) return 'update';
  return status === 'active' ? 'enable' : 'disable';
}

function changesOf(db: Database, actor: Actor, key: store.KeyRecord, patch: KeyPatch, now: number): store.KeyChanges {
  if (patch.description !== undefined) checkRenamable(key);
  return {
    ...(patch.description === undefined ? {} : { description: patch.description ?? '' }),
    ...(patch.tags === undefined ? {} : tagsOf(key, patch.tags)),
    ...(namesLimits(patch) ? limitsOf(db, actor, key, patch, now) : {}),
    ...minuteLimitsOf(key, patch),
    ...(patch.status === undefined
      ? {}
      : patch.status === 'active'
        ? enable(key, now)
        : { ...disable(key, now), ...ONE_SECRET }),
  };
}

function tagsOf(key: ApiKey, tags: readonly string[]): store.KeyChanges {
  if (key.kind === 'platform_secret') throw permissionDenied('A platform key has no tags: it makes no calls.');
  return { tagsJson: JSON.stringify(sortedTags(tags)) };
}

function minuteLimitsOf(key: ApiKey, patch: KeyPatch): Partial<MinuteLimits> {
  const named = minuteLimits(patch);
  if (Object.keys(named).length > 0 && key.kind === 'platform_secret') throw unlimitable();
  return named;
}

/** A platform key makes no gateway calls, so a limit on it would never be enforced. */
const unlimitable = (): ApiError => permissionDenied('A platform key cannot be limited.');

function limitsOf(db: Database, actor: Actor, key: store.KeyRecord, patch: KeyPatch, now: number): store.KeyChanges {
  if (key.kind === 'platform_secret') throw unlimitable();
  const limits = newLimits(patch, key);
  const changes = setLimits(key, limits);
  checkNewLimits(db, actor, key, patch, limits, now);
  return { ...changes, limitedBySelf: isDeveloper(actor) && (key.limitedBySelf === 1 || !isCapped(key)) ? 1 : 0 };
}

/**
 * The owner of a new key: the member that is named, or the maker of the master key; the command line always names one. 404 for
 * a member that the organization does not have, 403 where the actor may make no keys for the member.
 */
export function ownerOfNewKey(db: Database, actor: Actor, createdBy: string | undefined): string {
  if (createdBy === undefined) {
    if (actor.kind !== 'cli') return actor.memberId;
    throw invalidField('/createdBy', 'is missing');
  }
  const owner = getMember(db, actor.organizationId, createdBy).id;
  checkMakesKeysFor(actor, owner);
  return owner;
}

/**
 * A key as admin JSON shows it (src/admin/README.md, "record"), at `now` in epoch ms.
 * @param ownerEmail undefined when the member who owns it has left.
 */
function viewKey(key: store.KeyRecord, ownerEmail: string | undefined, now: number): KeyRecord {
  const ownState = keyState(key, now);
  if (ownState === 'deleted') throw new Error('A deleted key is not shown.');
  // A key without an owner is refused (src/admin/README.md, "owner").
  const state = ownerEmail === undefined ? 'disabled' : ownState;
  return {
    id: key.id,
    createdAt: formatTime(key.createdAt),
    updatedAt: formatTime(key.updatedAt),
    description: key.description === '' ? null : key.description,
    projectId: key.projectId,
    createdBy: ownerEmail === undefined ? null : key.createdBy,
    createdByEmail: ownerEmail ?? null,
    kind: key.kind,
    status: key.status,
    state,
    // Nobody has a playground key's secret.
    maskedToken: key.kind === 'playground' ? null : key.mask,
    expiresAt: optional(key.expiresAt, formatTime),
    ...viewLimits(key, now),
    lastUsedAt: optional(key.lastUsedAt, formatTime),
    previousTokenEndsAt:
      key.previousSecretEndsAt !== null && key.previousSecretEndsAt > now ? formatTime(key.previousSecretEndsAt) : null,
    tags: JSON.parse(key.tagsJson),
    sharesLimitsOf: key.sharesLimitsOf,
    requestsPerMinute: key.requestsPerMinute,
    tokensPerMinute: key.tokensPerMinute,
  };
}

/** A key as admin JSON shows it; `now` in epoch ms. */
export const viewStoredKey = (db: Database, key: store.KeyRecord, now: number): KeyRecord =>
  viewKey(key, findMember(db, key.organizationId, key.createdBy)?.email, now);

/** Keys in one transaction: a thousand that expire at one instant must not hold up the calls of others. */
const BATCH = 50;

/**
 * The background job of the specification's key states: marks keys inactive whose time to live has passed, and ends applications whose
 * secret has ended. The gateway refuses both on time without it; a run that the database cannot take now is made up for by the next.
 * @returns what ends the job
 */
export function startExpiringKeys(store: Pick<Store, 'write'>, intervalMs = 30_000): () => void {
  const run = async (): Promise<void> => {
    while ((await store.write(expireKeys)) === BATCH);
    while ((await store.write((db, now) => endDueGrants(db, now, BATCH))) === BATCH);
  };
  let running = false;
  const timer = setInterval(() => {
    if (running) return;
    running = true;
    run()
      .catch(() => undefined)
      .finally(() => {
        running = false;
      });
  }, intervalMs);
  return () => clearInterval(timer);
}

/** Marks up to a batch of expired keys inactive, in all organizations; returns how many. */
function expireKeys(db: Database, now: number): number {
  const expired = listExpiredKeys(db, now, BATCH);
  for (const key of expired) {
    const { id, organizationId } = key;
    const before = viewStoredKey(db, key, now);
    const after = viewStoredKey(db, updateKey(db, organizationId, id, expire(key, now), now), now);
    recordChange(db, { kind: 'job', name: 'expire_keys', organizationId }, 'key', 'expire', { before, after }, now);
  }
  return expired.length;
}
