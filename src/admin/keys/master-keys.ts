import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest, notFound } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type { Deletion, MasterKeyAnswer, MasterKeyList, MasterKeyRecord } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import * as store from '../../store/tenants/master-key-records.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import {
  type Actor,
  checkChangesMasterKeyOf,
  checkManagesOrganization,
  recordChange,
  seesAllKeys,
  seesKeyOf,
} from '../audit/audit-trail.ts';
import { newSecret, type SecretWrite } from './new-secret.ts';

const MAX_MASTER_KEYS = 10;

const EXPLANATIONS = [
  { at: /^\/description$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  { at: /^\/(createdBy|memberId)$/, must: 'cannot be set: a master key acts for the member who makes it' },
];

/**
 * Makes a master key that acts for the same member as the key it is made with; the answer alone carries the secret, as `token`.
 * 400 for a wrong shape or beyond the limit, 403 for developers.
 * @param body as `MasterKeyCreate`, unchecked. @param memberId the member that it acts for, as the command line names it
 */
export function createMasterKey(
  db: Database,
  actor: Actor,
  body: unknown,
  { now, pepper, memberId }: SecretWrite & { readonly memberId?: string },
): MasterKeyAnswer {
  const { description } = checkShape(validator('MasterKeyCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    if (store.countMasterKeys(db, organizationId) >= MAX_MASTER_KEYS) {
      throw invalidRequest(`An organization has at most ${MAX_MASTER_KEYS} master keys: delete one first.`);
    }
    const { token, ...secret } = newSecret('master', pepper);
    const maker = actor.kind === 'cli' ? getMember(db, organizationId, memberId ?? '').id : actor.memberId;
    const key = { ...secret, id: newId('mkey'), organizationId, memberId: maker, description };
    const masterKey = view(db, store.insertMasterKey(db, key, now));
    recordChange(db, actor, 'master_key', 'create', { before: null, after: masterKey }, now);
    return { masterKey: { ...masterKey, token } };
  });
}

/** A page of the organization's master keys, newest first; developers see those that act for them. */
export function listMasterKeys(db: Database, actor: Actor, page: PageRequest): MasterKeyList {
  const memberId = seesAllKeys(actor) || actor.kind === 'cli' ? undefined : actor.memberId;
  const { items, nextCursor } = store.listMasterKeys(db, actor.organizationId, memberId, page);
  return { masterKeys: items.map((key) => view(db, key)), nextCursor };
}

/** One master key; 404 when there is none that the actor sees. */
export const getMasterKey = (db: Database, actor: Actor, id: string): MasterKeyAnswer => ({
  masterKey: view(db, visibleKey(db, actor, id)),
});

/**
 * Renames a master key. Shape 400; an owner's by an admin 403.
 * @param body as `MasterKeyPatch`, unchecked. @param now epoch ms
 */
export function changeMasterKey(db: Database, actor: Actor, id: string, body: unknown, now: number): MasterKeyAnswer {
  const patch = checkShape(validator('MasterKeyPatch'), body, EXPLANATIONS);
  return db.transaction(() => {
    const key = changeableKey(db, actor, id);
    const { description = key.description } = patch;
    const masterKey = view(db, store.renameMasterKey(db, actor.organizationId, id, description, now));
    recordChange(db, actor, 'master_key', 'update', { before: view(db, key), after: masterKey }, now);
    return { masterKey };
  });
}

/** Deletes a master key, from the next request on; also the one that asks for it. An owner's by an admin 403. */
export function deleteMasterKey(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    const before = view(db, changeableKey(db, actor, id));
    store.deleteMasterKey(db, actor.organizationId, id, now);
    recordChange(db, actor, 'master_key', 'delete', { before, after: null }, now);
    return { id, deleted: true };
  });
}

function visibleKey(db: Database, actor: Actor, id: string): store.MasterKeyRecord {
  const key = store.getMasterKey(db, actor.organizationId, id);
  if (!seesKeyOf(actor, key.memberId)) throw notFound('There is no such master key.');
  return key;
}

function changeableKey(db: Database, actor: Actor, id: string): store.MasterKeyRecord {
  const key = visibleKey(db, actor, id);
  checkChangesMasterKeyOf(actor, getMember(db, actor.organizationId, key.memberId));
  return key;
}

/** Its maker is present: it goes with them. */
const view = (db: Database, key: store.MasterKeyRecord): MasterKeyRecord => ({
  id: key.id,
  createdAt: formatTime(key.createdAt),
  updatedAt: formatTime(key.updatedAt),
  description: key.description,
  createdBy: key.memberId,
  createdByEmail: getMember(db, key.organizationId, key.memberId).email,
  maskedToken: key.mask,
  lastUsedAt: key.lastUsedAt === null ? null : formatTime(key.lastUsedAt),
});
