import type { Selectable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { MasterKeysTable, Role } from '../db/tables.ts';
import type { StoredSecret } from './keys.ts';

export interface MasterKeyRecord {
  readonly id: string;
  readonly organizationId: string;
  /** Who made it. */
  readonly memberId: string;
  readonly description: string;
  readonly mask: string;
  readonly lastUsedAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface NewMasterKey extends StoredSecret {
  readonly id: string;
  readonly organizationId: string;
  readonly memberId: string;
  readonly description: string;
}

/** Who acts with a master key: its maker, with the role that they have now. */
export interface MasterKeyCredential {
  readonly masterKeyId: string;
  readonly organizationId: string;
  readonly memberId: string;
  readonly role: Role;
}

/** A master key found by its secret. */
export interface FoundMasterKey extends MasterKeyCredential {
  /** Epoch ms; null: never. */
  readonly lastUsedAt: number | null;
}

const toMasterKey = (row: Selectable<MasterKeysTable>): MasterKeyRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  memberId: row.member_id,
  description: row.description,
  mask: row.mask,
  lastUsedAt: row.last_used_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export function insertMasterKey(db: Database, key: NewMasterKey, now: number): MasterKeyRecord {
  db.run(
    build.insertInto('master_keys').values({
      id: key.id,
      organization_id: key.organizationId,
      member_id: key.memberId,
      description: key.description,
      secret_hash: key.secretHash,
      pepper_id: key.pepperId,
      mask: key.mask,
      created_at: now,
      updated_at: now,
    }),
  );
  return getMasterKey(db, key.organizationId, key.id);
}

/** The master key, or a 404 when it is missing, deleted, or of another organization. */
export function getMasterKey(db: Database, organizationId: string, id: string): MasterKeyRecord {
  const row = db.get(
    build
      .selectFrom('master_keys')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  if (row === undefined) throw notFound('There is no such master key.');
  return toMasterKey(row);
}

/** Master keys that are not deleted, newest first; of one maker when one is named. */
export function listMasterKeys(
  db: Database,
  organizationId: string,
  memberId: string | undefined,
  page: PageRequest,
): Page<MasterKeyRecord> {
  let query = build
    .selectFrom('master_keys')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (memberId !== undefined) query = query.where('member_id', '=', memberId);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toMasterKey), page.limit);
}

/** How many master keys are not deleted. */
export const countMasterKeys = (db: Database, organizationId: string): number =>
  db.get(
    build
      .selectFrom('master_keys')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('organization_id', '=', organizationId)
      .where('deleted_at', 'is', null),
  )?.count ?? 0;

/** Gives a master key another label; 404 when there is none. */
export function renameMasterKey(
  db: Database,
  organizationId: string,
  id: string,
  description: string,
  now: number,
): MasterKeyRecord {
  db.run(
    build
      .updateTable('master_keys')
      .set({ description, updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  return getMasterKey(db, organizationId, id);
}

/** Deletes a master key softly; 404 when there is none. */
export function deleteMasterKey(db: Database, organizationId: string, id: string, now: number): void {
  const deleted = db.run(
    build
      .updateTable('master_keys')
      .set({ deleted_at: now, updated_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  if (deleted !== 1) throw notFound('There is no such master key.');
}

/** The master key of this hash; undefined when unknown, deleted, or its maker has left. */
export function findMasterKeyByHash(db: Database, secretHash: string): FoundMasterKey | undefined {
  const row = db.get(
    build
      .selectFrom('master_keys')
      .innerJoin('members', (join) =>
        join
          .onRef('members.id', '=', 'master_keys.member_id')
          .onRef('members.organization_id', '=', 'master_keys.organization_id'),
      )
      .select(['master_keys.id', 'master_keys.organization_id', 'master_keys.member_id', 'members.role'])
      .select('master_keys.last_used_at')
      .where('master_keys.secret_hash', '=', secretHash)
      .where('master_keys.deleted_at', 'is', null)
      .where('members.removed_at', 'is', null),
  );
  if (row === undefined) return undefined;
  return {
    masterKeyId: row.id,
    organizationId: row.organization_id,
    memberId: row.member_id,
    role: row.role,
    lastUsedAt: row.last_used_at,
  };
}

/** Notes that the master key was used. */
export function touchMasterKey(db: Database, organizationId: string, id: string, now: number): void {
  db.run(
    build
      .updateTable('master_keys')
      .set({ last_used_at: now })
      .where('organization_id', '=', organizationId)
      .where('id', '=', id),
  );
}
