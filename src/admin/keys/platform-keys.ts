import { checkShape } from '../../domain/check-shape.ts';
import { notFound } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import type { Deletion, KeyRecord, PlatformKeyAnswer, PlatformKeyList } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import {
  addPlaygroundKeys,
  findPlaygroundKey,
  insertKey,
  type KeyRecord as StoredKeyRecord,
} from '../../store/tenants/key-records.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { getProject } from '../../store/tenants/tenants.ts';
import { type Actor, recordChange } from '../audit/audit-trail.ts';
import { NO_LIMITS } from './key-limits.ts';
import { deleteKey, getKey, type KeyListRequest, listKeys, ownerOfNewKey, viewStoredKey } from './keys.ts';
import { newSecret, type SecretWrite } from './new-secret.ts';

const EXPLANATIONS = [
  { at: /^\/description$/, must: 'must be a text of at most 256 characters, or null' },
  {
    at: /^\/(usageLimit|periodUsage\w+|ttl|expiresAt)$/,
    must: 'cannot be set: a platform key makes no calls that could be limited',
  },
];

/**
 * Makes a platform secret key (`sk_`), which authenticates no gateway call; the answer alone carries the secret, as `token`.
 * Shape 400, foreign project or owner 404, a key for someone else by a developer 403.
 * @param body as `PlatformKeyCreate`, unchecked.
 */
export function createPlatformKey(
  db: Database,
  actor: Actor,
  body: unknown,
  { now, pepper }: SecretWrite,
): PlatformKeyAnswer {
  const wanted = checkShape(validator('PlatformKeyCreate'), body, EXPLANATIONS);
  return db.transaction(() => {
    const { token, ...secret } = newSecret('platform', pepper);
    const key = {
      ...NO_LIMITS,
      ...secret,
      id: newId('key'),
      organizationId: actor.organizationId,
      projectId: getProject(db, actor.organizationId, wanted.projectId).id,
      createdBy: ownerOfNewKey(db, actor, wanted.createdBy),
      description: wanted.description ?? '',
      kind: 'platform_secret' as const,
      expiresAt: null,
    };
    const made = viewStoredKey(db, insertKey(db, key, now), now);
    recordChange(db, actor, 'key', 'create', { before: null, after: made }, now);
    return { platformKey: { ...made, token } };
  });
}

/** A page of the platform keys that the actor sees, newest first; `now` in epoch ms. */
export function listPlatformKeys(
  db: Database,
  actor: Actor,
  request: Omit<KeyListRequest, 'kind'>,
  now: number,
): PlatformKeyList {
  const { keys, nextCursor } = listKeys(db, actor, { ...request, kind: 'platform_secret' }, now);
  return { platformKeys: keys, nextCursor };
}

/** One platform key; 404 when there is none that the actor sees. */
export const getPlatformKey = (db: Database, actor: Actor, id: string, now: number): PlatformKeyAnswer => ({
  platformKey: platformKey(db, actor, id, now),
});

export function deletePlatformKey(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => deleteKey(db, actor, platformKey(db, actor, id, now).id, now));
}

/** Keys of other kinds are not found here. */
function platformKey(db: Database, actor: Actor, id: string, now: number): KeyRecord {
  const { key } = getKey(db, actor, id, now);
  if (key.kind !== 'platform_secret') throw notFound('There is no such key.');
  return key;
}

/**
 * The key with which a member tries models in a project at the dashboard. It is made together with the member or the project
 * (src/admin/README.md, "kind"), or here where it is missing; 404 for a member or a project that is not the organization's.
 * Runs inside one transaction of the caller's. @param now epoch ms
 */
export function playgroundKey(
  db: Database,
  organizationId: string,
  memberId: string,
  projectId: string,
  now: number,
): StoredKeyRecord {
  getMember(db, organizationId, memberId);
  getProject(db, organizationId, projectId);
  const find = () => findPlaygroundKey(db, organizationId, memberId, projectId);
  const present = find();
  if (present !== undefined) return present;
  addPlaygroundKeys(db, organizationId, { memberId, projectId }, now);
  const made = find();
  if (made === undefined) throw new Error(`No playground key was made of ${memberId} in ${projectId}.`);
  return made;
}
