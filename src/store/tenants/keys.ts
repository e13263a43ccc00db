import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { ApiKey, KeyKind } from '../../domain/api-key.ts';
import { notFound } from '../../domain/errors.ts';
import type { SpendState } from '../../domain/spend-limits.ts';
import { toSpendColumns } from '../budgets/spend-columns.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { KeysTable } from '../db/tables.ts';
import { insertSubject } from './insert-subject.ts';
import { toApiKey } from './key-columns.ts';

/** A stored gateway, playground or platform key. Times in epoch ms, amounts in pico-dollars. */
export interface KeyRecord extends ApiKey, SpendState {
  readonly id: string;
  readonly organizationId: string;
  readonly projectId: string;
  /** The member who owns the key. */
  readonly createdBy: string;
  readonly description: string;
  readonly mask: string;
  readonly lastUsedAt: number | null;
  /** Until then the secret before the last roll is accepted too; null: it ended at once, or the key was never rolled. */
  readonly previousSecretEndsAt: number | null;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** The stored form of a secret. */
export interface StoredSecret {
  /** HMAC-SHA-256 in hex. */
  readonly secretHash: string;
  readonly pepperId: string;
  readonly mask: string;
}

export interface NewKey extends StoredSecret {
  readonly id: string;
  readonly organizationId: string;
  readonly projectId: string;
  readonly createdBy: string;
  readonly description: string;
  readonly kind: KeyKind;
  readonly expiresAt: number | null;
  readonly usageLimit: bigint | null;
  readonly periodUsageLimit: bigint | null;
  readonly periodUsageDurationValue: number | null;
  readonly periodUsageDurationUnit: ApiKey['periodUsageDurationUnit'];
}

/** What may change on a key: the columns of its transitions, its label, its secret. */
export type KeyChanges = Partial<Omit<ApiKey, 'kind' | 'usage'>> &
  Partial<StoredSecret> & {
    description?: string;
    /** Keeps the secret that is there as the previous one until then; null ends the previous one. */
    previousSecretEndsAt?: number | null;
  };

const toRecord = (row: Selectable<KeysTable>): KeyRecord => ({
  ...toApiKey(row),
  id: row.id,
  organizationId: row.organization_id,
  projectId: row.project_id,
  createdBy: row.created_by,
  description: row.description,
  mask: row.mask,
  lastUsedAt: row.last_used_at,
  previousSecretEndsAt: row.previous_ends_at,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** Stores a new key and makes it a subject that rules can be attached to. */
export function insertKey(db: Database, key: NewKey, now: number): KeyRecord {
  const row: Insertable<KeysTable> = {
    id: key.id,
    organization_id: key.organizationId,
    project_id: key.projectId,
    created_by: key.createdBy,
    description: key.description,
    kind: key.kind,
    secret_hash: key.secretHash,
    pepper_id: key.pepperId,
    mask: key.mask,
    expires_at: key.expiresAt,
    usage_limit_pico: key.usageLimit,
    period_limit_pico: key.periodUsageLimit,
    period_value: key.periodUsageDurationValue,
    period_unit: key.periodUsageDurationUnit,
    created_at: now,
    updated_at: now,
  };
  return db.transaction(() => {
    db.run(build.insertInto('keys').values(row));
    insertSubject(db, key.organizationId, key.id, 'key');
    return getKey(db, key.organizationId, key.id);
  });
}

/** The key, deleted ones too, or undefined when the organization has none of that id. */
export function findKey(db: Database, organizationId: string, id: string): KeyRecord | undefined {
  const row = db.get(
    build.selectFrom('keys').selectAll().where('organization_id', '=', organizationId).where('id', '=', id),
  );
  return row === undefined ? undefined : toRecord(row);
}

/** The key, or a 404 when it is missing, deleted, or of another organization. */
export function getKey(db: Database, organizationId: string, id: string): KeyRecord {
  const key = findKey(db, organizationId, id);
  if (key === undefined || key.deletedAt !== null) throw notFound('There is no such key.');
  return key;
}

/** The playground key of a member in a project. */
export function findPlaygroundKey(
  db: Database,
  organizationId: string,
  memberId: string,
  projectId: string,
): KeyRecord | undefined {
  const row = db.get(
    build
      .selectFrom('keys')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('created_by', '=', memberId)
      .where('project_id', '=', projectId)
      .where('kind', '=', 'playground')
      .where('deleted_at', 'is', null),
  );
  return row === undefined ? undefined : toRecord(row);
}

export interface KeyFilter {
  readonly kind: KeyKind;
  readonly projectId?: string | undefined;
  readonly createdBy?: string | undefined;
}

/** Keys of one kind that are not deleted, newest first. */
export function listKeys(db: Database, organizationId: string, filter: KeyFilter, page: PageRequest): Page<KeyRecord> {
  let query = build
    .selectFrom('keys')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .where('kind', '=', filter.kind)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (filter.projectId !== undefined) query = query.where('project_id', '=', filter.projectId);
  if (filter.createdBy !== undefined) query = query.where('created_by', '=', filter.createdBy);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toRecord), page.limit);
}

function toColumns(changes: KeyChanges): Updateable<KeysTable> {
  const row: Updateable<KeysTable> = toSpendColumns(changes);
  if (changes.description !== undefined) row.description = changes.description;
  if (changes.secretHash !== undefined) row.secret_hash = changes.secretHash;
  if (changes.pepperId !== undefined) row.pepper_id = changes.pepperId;
  if (changes.mask !== undefined) row.mask = changes.mask;
  if (changes.status !== undefined) row.status = changes.status;
  if (changes.disabledAt !== undefined) row.disabled_at = changes.disabledAt;
  if (changes.deletedAt !== undefined) row.deleted_at = changes.deletedAt;
  if (changes.expiresAt !== undefined) row.expires_at = changes.expiresAt;
  return row;
}

/** The secret that is there becomes the previous one, or there is none any more. */
function previousSecret({ previousSecretEndsAt: endsAt }: KeyChanges) {
  if (endsAt === undefined) return {};
  if (endsAt === null) return { previous_secret_hash: null, previous_pepper_id: null, previous_ends_at: null };
  return {
    previous_secret_hash: sql.ref<string>('secret_hash'),
    previous_pepper_id: sql.ref<string>('pepper_id'),
    previous_ends_at: endsAt,
  };
}

/** Writes what a transition of domain/api-key.ts changes, or a new label or secret; returns the key as it is then. */
export function updateKey(
  db: Database,
  organizationId: string,
  id: string,
  changes: KeyChanges,
  now: number,
): KeyRecord {
  return db.transaction(() => {
    const changed = db.run(
      build
        .updateTable('keys')
        .set({ ...toColumns(changes), ...previousSecret(changes), updated_at: now })
        .where('organization_id', '=', organizationId)
        .where('id', '=', id),
    );
    const key = findKey(db, organizationId, id);
    if (changed !== 1 || key === undefined) throw notFound('There is no such key.');
    return key;
  });
}

/** Keys of all organizations that are still marked active though their TTL has passed, the longest expired first. */
export const listExpiredKeys = (db: Database, now: number, limit: number): KeyRecord[] =>
  db
    .all(
      build
        .selectFrom('keys')
        .selectAll()
        .where('status', '=', sql.lit('active'))
        .where('expires_at', 'is not', null)
        .where('expires_at', '<=', now)
        .orderBy('expires_at')
        .limit(limit),
    )
    .map(toRecord);
