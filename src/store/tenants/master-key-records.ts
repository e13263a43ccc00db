import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { countRows, type Page, type PageRequest, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { MasterKeysTable, Role, Row, StoredSecret } from '../db/tables.ts';

const COLUMNS = [
  'id',
  'organizationId',
  'memberId',
  'description',
  'mask',
  'lastUsedAt',
  'createdAt',
  'updatedAt',
] as const;

export type MasterKeyRecord = Row<MasterKeysTable, (typeof COLUMNS)[number]>;

export type NewMasterKey = StoredSecret & Row<MasterKeysTable, 'id' | 'organizationId' | 'memberId' | 'description'>;

/** The actor behind a master key: its maker, with the role that they have now. */
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

const present = (organizationId: string) =>
  build.selectFrom('master_keys').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

export function insertMasterKey(db: Database, key: NewMasterKey, now: number): MasterKeyRecord {
  db.run(build.insertInto('master_keys').values({ ...key, createdAt: now, updatedAt: now }));
  return getMasterKey(db, key.organizationId, key.id);
}

/** The master key, or a 404 when it is missing, deleted, or of another organization. */
export function getMasterKey(db: Database, organizationId: string, id: string): MasterKeyRecord {
  const key = db.get(present(organizationId).select(COLUMNS).where('id', '=', id));
  if (key === undefined) throw notFound('There is no such master key.');
  return key;
}

/** Master keys that are not deleted, newest first; of one maker when one is named. */
export function listMasterKeys(
  db: Database,
  organizationId: string,
  memberId: string | undefined,
  page: PageRequest,
): Page<MasterKeyRecord> {
  const query = present(organizationId).select(COLUMNS);
  return readPage(db, memberId === undefined ? query : query.where('memberId', '=', memberId), page);
}

/** Counts the master keys that are not deleted. */
export const countMasterKeys = (db: Database, organizationId: string): number => countRows(db, present(organizationId));

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
      .set({ description, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  return getMasterKey(db, organizationId, id);
}

/** Deletes a master key softly; 404 when there is none. */
export function deleteMasterKey(db: Database, organizationId: string, id: string, now: number): void {
  const deleted = db.run(
    build
      .updateTable('master_keys')
      .set({ deletedAt: now, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  if (deleted !== 1) throw notFound('There is no such master key.');
}

/** The master key of this hash; undefined when unknown, deleted, or its maker has left. */
export const findMasterKeyByHash = (db: Database, secretHash: string): FoundMasterKey | undefined =>
  db.get(
    build
      .selectFrom('master_keys')
      .innerJoin('members', (join) =>
        join
          .onRef('members.id', '=', 'master_keys.memberId')
          .onRef('members.organizationId', '=', 'master_keys.organizationId'),
      )
      .select(['master_keys.id as masterKeyId', 'master_keys.organizationId', 'master_keys.memberId', 'members.role'])
      .select('master_keys.lastUsedAt')
      .where('master_keys.secretHash', '=', secretHash)
      .where('master_keys.deletedAt', 'is', null)
      .where('members.removedAt', 'is', null),
  );

/** Notes that the master key was used. */
export function touchMasterKey(db: Database, organizationId: string, id: string, now: number): void {
  db.run(
    build
      .updateTable('master_keys')
      .set({ lastUsedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id),
  );
}
