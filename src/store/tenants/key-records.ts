import { randomBytes } from 'node:crypto';
import { type Expression, type SqlBool, sql } from 'kysely';
import type { ApiKey, KeyKind } from '../../domain/api-key.ts';
import { notFound } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import type { MinuteLimits, SpendState } from '../../domain/limits.ts';
import type { Flag } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { insertSubject, type Page, type PageRequest, raiseRuleRevision, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { KeysTable, Row, StoredSecret } from '../db/tables.ts';
import { withItsReserve } from './budget-records.ts';

/** Columns from which a key's state and its room to spend are derived. */
export const KEY_STATE_COLUMNS = [
  'keys.kind',
  'keys.status',
  'keys.disabledAt',
  'keys.deletedAt',
  'keys.expiresAt',
  'keys.usageLimit',
  'keys.usage',
  'keys.reserved',
  'keys.periodUsageLimit',
  'keys.periodUsageDurationValue',
  'keys.periodUsageDurationUnit',
  'keys.periodUsageAlignment',
  'keys.currentPeriodUsage',
  'keys.currentPeriodReserved',
  'keys.currentPeriodStartedAt',
  'keys.sharesLimitsOf',
] as const;

const COLUMNS = [
  'id',
  'organizationId',
  'projectId',
  'createdBy',
  'description',
  'mask',
  'lastUsedAt',
  'previousSecretEndsAt',
  'tagsJson',
  'limitedBySelf',
  'sharesLimitsOf',
  'requestsPerMinute',
  'tokensPerMinute',
  'createdAt',
  'updatedAt',
] as const;

/** A stored gateway, playground or platform key. */
export type KeyRecord = ApiKey & SpendState & Row<KeysTable, (typeof COLUMNS)[number]>;

export type NewKey = StoredSecret &
  Row<KeysTable, 'id' | 'organizationId' | 'projectId' | 'createdBy' | 'description' | 'kind' | 'expiresAt'> &
  Partial<
    Pick<Row<KeysTable>, 'tagsJson' | 'limitedBySelf' | 'sharesLimitsOf' | 'periodUsageAlignment' | keyof MinuteLimits>
  > &
  Pick<SpendState, 'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit'>;

/** Columns of a key that may change: those of its transitions, its label, its tags, its secret. */
export type KeyChanges = Partial<Omit<ApiKey, 'kind' | 'usage'>> &
  Partial<StoredSecret> &
  Partial<MinuteLimits> & {
    description?: string;
    tagsJson?: string;
    limitedBySelf?: Flag;
    /** Keeps the secret that is there as the previous one until then; null ends the previous one. */
    previousSecretEndsAt?: number | null;
  };

const keysOf = (organizationId: string) =>
  build.selectFrom('keys').select(COLUMNS).select(KEY_STATE_COLUMNS).where('organizationId', '=', organizationId);

/** Stores a new key and makes it a subject that rules can be attached to. */
export function insertKey(db: Database, key: NewKey, now: number): KeyRecord {
  return db.transaction(() => {
    db.run(build.insertInto('keys').values({ ...key, createdAt: now, updatedAt: now }));
    insertSubject(db, key.organizationId, key.id, 'key');
    return getKey(db, key.organizationId, key.id);
  });
}

/** The key, deleted ones too, or undefined when the organization has none of that id. */
export const findKey = (db: Database, organizationId: string, id: string): KeyRecord | undefined =>
  db.get(keysOf(organizationId).where('id', '=', id));

/** The key, or a 404 when it is missing, deleted, or of another organization. */
export function getKey(db: Database, organizationId: string, id: string): KeyRecord {
  const key = findKey(db, organizationId, id);
  if (key === undefined || key.deletedAt !== null) throw notFound('There is no such key.');
  return key;
}

/**
 * When the secret of a key ends that has one of these hashes: epoch ms, or null for its present one. Undefined: it is not a secret of the
 * key, or no longer. @param now epoch ms
 */
export function findSecretEnd(
  db: Database,
  organizationId: string,
  id: string,
  hashes: readonly string[],
  now: number,
): number | null | undefined {
  const key = db.get(
    build
      .selectFrom('keys')
      .select(['secretHash', 'previousSecretHash', 'previousSecretEndsAt'])
      .where('organizationId', '=', organizationId)
      .where('id', '=', id),
  );
  if (key === undefined) return undefined;
  if (hashes.some((hash) => hash === key.secretHash)) return null;
  const endsAt = key.previousSecretEndsAt ?? 0;
  return endsAt > now && hashes.some((hash) => hash === key.previousSecretHash) ? endsAt : undefined;
}

/** The playground key of a member in a project. */
export const findPlaygroundKey = (
  db: Database,
  organizationId: string,
  memberId: string,
  projectId: string,
): KeyRecord | undefined =>
  db.get(
    keysOf(organizationId)
      .where('createdBy', '=', memberId)
      .where('projectId', '=', projectId)
      .where('kind', '=', 'playground')
      .where('deletedAt', 'is', null),
  );

export interface KeyFilter {
  readonly kind: KeyKind;
  readonly projectId?: string | undefined;
  readonly createdBy?: string | undefined;
}

/** Keys of one kind that are not deleted, newest first. */
export function listKeys(db: Database, organizationId: string, filter: KeyFilter, page: PageRequest): Page<KeyRecord> {
  let query = keysOf(organizationId).where('deletedAt', 'is', null).where('kind', '=', filter.kind);
  if (filter.projectId !== undefined) query = query.where('projectId', '=', filter.projectId);
  if (filter.createdBy !== undefined) query = query.where('createdBy', '=', filter.createdBy);
  return readPage(db, query, page);
}

/** Keys of one member that are looked at for what their next key may be given. */
const MAX_BINDING_KEYS = 1000;

/** The regular keys of a member, deleted ones too: first those whose limits others chose, then the newest. */
export const listKeysOfMember = (db: Database, organizationId: string, memberId: string): KeyRecord[] =>
  db.all(
    keysOf(organizationId)
      .where('createdBy', '=', memberId)
      .where('kind', '=', 'regular')
      .orderBy('limitedBySelf')
      .orderBy('id', 'desc')
      .limit(MAX_BINDING_KEYS),
  );

/** Every regular key that is not deleted, by id: many rows, but short ones. */
export const listKeyDescriptions = (
  db: Database,
  organizationId: string,
): { readonly id: string; readonly description: string }[] =>
  db.all(
    build
      .selectFrom('keys')
      .select(['id', 'description'])
      .where('organizationId', '=', organizationId)
      .where('kind', '=', 'regular')
      .where('deletedAt', 'is', null)
      .orderBy('id'),
  );

/** The secret that is there becomes the previous one, or there is none any more. */
function previousSecret({ previousSecretEndsAt: endsAt }: KeyChanges) {
  if (endsAt === undefined) return {};
  if (endsAt === null) return { previousSecretHash: null, previousPepperId: null };
  return { previousSecretHash: sql.ref<string>('secretHash'), previousPepperId: sql.ref<string>('pepperId') };
}

/**
 * Writes what a transition of domain/api-key.ts changes, or a new label, new tags or a secret; returns the key as it is then. Tags
 * raise the rule revision, as rules do: custom policy goes by them.
 */
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
        .set({ ...withItsReserve(changes), ...previousSecret(changes), updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    if (changes.tagsJson !== undefined) raiseRuleRevision(db, organizationId);
    const key = findKey(db, organizationId, id);
    if (changed !== 1 || key === undefined) throw notFound('There is no such key.');
    return key;
  });
}

/** Keys of all organizations that are still marked active though their TTL has passed, the longest expired first. */
export const listExpiredKeys = (db: Database, now: number, limit: number): KeyRecord[] =>
  db.all(
    build
      .selectFrom('keys')
      .select(COLUMNS)
      .select(KEY_STATE_COLUMNS)
      .where('status', '=', sql.lit('active'))
      .where('expiresAt', 'is not', null)
      .where('expiresAt', '<=', now)
      .orderBy('expiresAt')
      .limit(limit),
  );

/** Owners of playground keys: one member, one project, or both together. */
export type PlaygroundKeyOwners =
  | { readonly memberId: string; readonly projectId?: string }
  | { readonly memberId?: string; readonly projectId: string };

/** Description of every playground key; its owner and its project distinguish it from the others. */
export const PLAYGROUND = 'Playground';

/** Rows in one statement: SQLite takes 32,766 values. */
const CHUNK = 500;

/**
 * Adds the playground keys that present members lack in the organization's projects. They have no secret: what stands in the
 * place of its hash is random, so nobody, the server included, can ever present one.
 */
export function addPlaygroundKeys(
  db: Database,
  organizationId: string,
  owners: PlaygroundKeyOwners,
  now: number,
): void {
  db.transaction(() => {
    const rows = missing(db, organizationId, owners).map((pair) => ({
      ...pair,
      id: newId('key'),
      organizationId,
      description: PLAYGROUND,
      kind: 'playground' as const,
      secretHash: randomBytes(32).toString('hex'),
      pepperId: 'none',
      mask: 'none',
      createdAt: now,
      updatedAt: now,
    }));
    for (let start = 0; start < rows.length; start += CHUNK) {
      const chunk = rows.slice(start, start + CHUNK);
      const subjects = chunk.map(({ id }) => ({ subjectId: id, organizationId, scope: 'key' as const }));
      db.run(build.insertInto('keys').values(chunk));
      db.run(build.insertInto('subject_rules').values(subjects));
    }
  });
}

/** Every pair of a present member and a project that is not deleted, where it has no playground key. */
function missing(db: Database, organizationId: string, { memberId, projectId }: PlaygroundKeyOwners) {
  const query = build
    .selectFrom('members')
    .innerJoin('projects', 'projects.organizationId', 'members.organizationId')
    .select(['members.id as createdBy', 'projects.id as projectId'])
    .where('members.organizationId', '=', organizationId)
    .where('members.removedAt', 'is', null)
    .where('projects.deletedAt', 'is', null)
    .where(
      ({ not, exists, selectFrom }): Expression<SqlBool> =>
        not(
          exists(
            selectFrom('keys')
              .select('keys.id')
              .whereRef('keys.organizationId', '=', 'members.organizationId')
              .whereRef('keys.createdBy', '=', 'members.id')
              .whereRef('keys.projectId', '=', 'projects.id')
              // A literal: SQLite uses the index of playground keys for no bound value.
              .where('keys.kind', '=', sql.lit('playground'))
              .where('keys.deletedAt', 'is', null),
          ),
        ),
    )
    .orderBy('members.id')
    .orderBy('projects.id');
  const ofMember = memberId === undefined ? query : query.where('members.id', '=', memberId);
  return db.all(projectId === undefined ? ofMember : ofMember.where('projects.id', '=', projectId));
}
