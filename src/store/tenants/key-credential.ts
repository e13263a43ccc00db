import { type ExpressionBuilder, sql } from 'kysely';
import { type ApiKey, refusal } from '../../domain/api-key.ts';
import { type ApiError, unauthorized } from '../../domain/errors.ts';
import { type Budget, budgetRefusal, isCapped, isLimited, type KeyRate, type SpendState } from '../../domain/limits.ts';
import { type Database, type Freshness, FreshReads } from '../db/database.ts';
import { bind, build, Parameter, prepare, prepareHot } from '../db/sql.ts';
import type { Role, Tables } from '../db/tables.ts';
import { BUDGET_COLUMNS, SPEND_COLUMNS } from './budget-records.ts';
import { KEY_STATE_COLUMNS } from './key-records.ts';

/** All that is needed to authenticate a caller by its key and to know whose rules apply. */
export interface KeyCredential extends ApiKey, SpendState {
  readonly keyId: string;
  readonly organizationId: string;
  readonly projectId: string;
  /** The owner; undefined when missing or removed, which denies. */
  readonly memberId: string | undefined;
  readonly memberRole: Role | undefined;
  /** The groups that the owner or the key is in, by name. */
  readonly groupIds: readonly string[];
  readonly tags: readonly string[];
  readonly plan: string;
  readonly ruleRevision: number;
  readonly cachingEnabled: boolean;
  readonly cacheDurationSeconds: number;
  /** The key whose limits this one shares. */
  readonly sharesLimitsOf: string | null;
  /**
   * Budgets of the owner, the project and the organization, and the shared limits; a key without a present owner is denied
   * anyway.
   */
  readonly budgets: readonly Budget[];
  /** Limits a minute of the key, its owner, its project and its organization, where there are any. */
  readonly rates: readonly KeyRate[];
  /** When the secret that was shown ends by itself, because the key was rolled; null: it is the key's present one. */
  readonly secretEndsAt: number | null;
}

/** Reads a key by the hash of its secret, or else of the one before that: the only query without an organization, because it finds it. */
function prepareFindKeyByHash(db: Database, budgets: BudgetReads): (secretHash: string) => KeyCredential | undefined {
  const present = prepareFindKeyBy(db, 'keys.secretHash', budgets);
  const previous = prepareFindKeyBy(db, 'keys.previousSecretHash', budgets);
  return (secretHash) => present(secretHash) ?? previous(secretHash);
}

/** The groups of a key, its own and its owner's, as JSON: in the query of the key, so that a key costs one. */
const groupIdsOf = (keys: ExpressionBuilder<Tables, 'keys'>) =>
  keys
    .selectFrom('groups')
    .select(sql<string>`json_group_array(groups.id ORDER BY groups.name)`.as('ids'))
    .whereRef('groups.organizationId', '=', 'keys.organizationId')
    .where('groups.deletedAt', 'is', null)
    .where('groups.id', 'in', ({ selectFrom, ref }) =>
      selectFrom('group_holders')
        .select('group_holders.groupId')
        .whereRef('group_holders.organizationId', '=', 'keys.organizationId')
        .where('group_holders.holderId', 'in', [ref('keys.id'), ref('keys.createdBy')]),
    )
    .$asScalar()
    .$notNull();

function prepareFindKeyBy(
  db: Database,
  column: 'keys.id' | 'keys.secretHash' | 'keys.previousSecretHash',
  budgets: BudgetReads,
): (value: string) => KeyCredential | undefined {
  const statement = prepare(
    db.connection,
    build
      .selectFrom('keys')
      .innerJoin('projects', 'projects.id', 'keys.projectId')
      .innerJoin('organizations', 'organizations.id', 'keys.organizationId')
      .leftJoin('members', (join) =>
        join
          .onRef('members.id', '=', 'keys.createdBy')
          .onRef('members.organizationId', '=', 'keys.organizationId')
          .on('members.removedAt', 'is', null),
      )
      .select(KEY_STATE_COLUMNS)
      .select([
        'keys.id as keyId',
        'keys.organizationId',
        'keys.projectId',
        'members.id as memberId',
        'members.role as memberRole',
        'organizations.plan',
        'organizations.ruleRevision',
        'projects.cachingEnabled',
        'projects.cacheDurationSeconds',
        'keys.previousSecretEndsAt as secretEndsAt',
        'keys.tagsJson',
        'keys.requestsPerMinute as keyRequests',
        'keys.tokensPerMinute as keyTokens',
        'members.requestsPerMinute as memberRequests',
        'members.tokensPerMinute as memberTokens',
        'projects.requestsPerMinute as projectRequests',
        'projects.tokensPerMinute as projectTokens',
        'organizations.requestsPerMinute as organizationRequests',
        'organizations.tokensPerMinute as organizationTokens',
      ])
      .select((keys) => groupIdsOf(keys).as('groupIdsJson'))
      // As a subquery: with a bare parameter in a join SQLite plans the statement again for every value (35 µs instead of 2).
      .where(column, '=', sql<string>`(SELECT ${bind<string>('value')})`)
      .where('projects.deletedAt', 'is', null)
      .compile(),
  );
  return (value) => {
    const row = statement.get({ value });
    if (row === undefined) return undefined;
    const { groupIdsJson, tagsJson, ...columns } = row;
    const { key, rates } = withRates(columns);
    const { keyId, organizationId, projectId, memberId } = key;
    return {
      ...key,
      rates,
      groupIds: JSON.parse(groupIdsJson),
      tags: JSON.parse(tagsJson),
      budgets: memberId === null ? [] : budgets.of({ keyId, organizationId, projectId, memberId }, key.sharesLimitsOf),
      memberId: memberId ?? undefined,
      memberRole: row.memberRole ?? undefined,
      cachingEnabled: row.cachingEnabled === 1,
      secretEndsAt: column === 'keys.previousSecretHash' ? row.secretEndsAt : null,
    };
  };
}

/** Limits a minute as the columns of a row. */
type RateColumns = Readonly<Record<`${KeyRate['scope']}${'Requests' | 'Tokens'}`, number | null>>;

type Subjects = Pick<KeyCredential, 'keyId' | 'organizationId' | 'projectId'> & { readonly memberId: string | null };

function withRates<Row extends RateColumns & Subjects>(row: Row) {
  const {
    keyRequests,
    keyTokens,
    memberRequests,
    memberTokens,
    projectRequests,
    projectTokens,
    organizationRequests,
    organizationTokens,
    ...key
  } = row;
  const all: KeyRate[] = [
    { scope: 'key', subjectId: row.keyId, requests: keyRequests, tokens: keyTokens },
    { scope: 'member', subjectId: row.memberId ?? '', requests: memberRequests, tokens: memberTokens },
    { scope: 'project', subjectId: row.projectId, requests: projectRequests, tokens: projectTokens },
    {
      scope: 'organization',
      subjectId: row.organizationId,
      requests: organizationRequests,
      tokens: organizationTokens,
    },
  ];
  return { key, rates: all.filter(({ requests, tokens }) => requests !== null || tokens !== null) };
}

export const invalidKey = (): ApiError => unauthorized('invalid_api_key', 'The API key is not valid.');

/** A key that may be used. */
export type UsableKey = KeyCredential & { readonly memberId: string };

/** The key, if it may be used at `now`; else the 401 that says why not. */
export function usable(key: KeyCredential, now: number): UsableKey | ApiError {
  const refused = refusal(key, now) ?? budgetRefusal(key.budgets, now);
  if (refused !== undefined) return refused;
  const { memberId } = key;
  // Without a present owner there is no ceiling that could be judged (src/admin/README.md, "owner").
  if (memberId === undefined) {
    return unauthorized('api_key_disabled', 'The owner of this API key has left the organization.');
  }
  return { ...key, memberId };
}

/** Reads of keys on the hot path. */
export interface KeyReads {
  /** The key of this secret hash; undefined when there is none. */
  find(secretHash: string): KeyCredential | undefined;
  /** The key without a limit as `find` gave it, if it cannot have changed since; undefined when that is not known. */
  unchanged(keyId: string): KeyCredential | undefined;
  /** The key as it is now; undefined when it or its project is gone. */
  byId(keyId: string): KeyCredential | undefined;
}

/** Most keys that are remembered. */
const MAX_KEYS = 10_000;

/** Reads again what calls change: the sums of a key and of the budgets that bind it. */
function prepareReadSums(db: Database, budgets: BudgetReads): (known: KeyCredential) => KeyCredential | undefined {
  const keyId = new Parameter<string>();
  const organizationId = new Parameter<string>();
  const statement = prepareHot(
    db.connection,
    [keyId, organizationId],
    build
      .selectFrom('keys')
      .select(KEY_STATE_COLUMNS)
      .where('id', '=', keyId)
      .where('organizationId', '=', organizationId)
      .compile(),
  );
  return (known) => {
    const row = statement.get(known.keyId, known.organizationId);
    if (row === undefined) return undefined;
    const { memberId } = known;
    return {
      ...known,
      ...row,
      budgets: memberId === undefined ? [] : budgets.of({ ...known, memberId }, row.sharesLimitsOf),
    };
  };
}

/**
 * Remembers keys for as long as nothing changes, so that a busy key costs no query. Of a key with a limit, its own or a budget, the
 * sums are read each time: they change with every call, which `Freshness` does not count as a change.
 */
export function createKeyReads(db: Database, freshness: Freshness, budgets: BudgetReads): KeyReads {
  const query = prepareFindKeyByHash(db, budgets);
  const readSums = prepareReadSums(db, budgets);
  const byId = prepareFindKeyBy(db, 'keys.id', budgets);
  const byHash = new FreshReads<KeyCredential>(freshness, MAX_KEYS);
  const remembered = new FreshReads<KeyCredential>(freshness, MAX_KEYS);
  return {
    find(secretHash) {
      const known = byHash.get(secretHash);
      if (known !== undefined) return isLimited(known) ? readSums(known) : known;
      const epoch = freshness.lastEpoch();
      const key = query(secretHash);
      if (key === undefined) return undefined;
      byHash.set(secretHash, key, epoch);
      if (!isLimited(key)) remembered.set(key.keyId, key, epoch);
      return key;
    },
    unchanged: (keyId) => remembered.get(keyId),
    byId,
  };
}

/** A key, and whose budgets bind it. */
interface BudgetedKey {
  readonly keyId: string;
  readonly memberId: string;
  readonly projectId: string;
  readonly organizationId: string;
}

/** Reads of budgets on the hot path. */
export interface BudgetReads {
  /**
   * The budgets that bind the key as they are now, in a fixed order; last the limits that it shares.
   * @param sharesLimitsOf the key whose limits those are
   */
  of(key: BudgetedKey, sharesLimitsOf: string | null): readonly Budget[];
  /** False when it is known, without a query, that none binds the key. */
  mayBind(keyId: string): boolean;
}

const NONE: readonly Budget[] = [];

const memberId = new Parameter<string>();
const projectId = new Parameter<string>();
const organizationId = new Parameter<string>();
const sharedId = new Parameter<string>();

const selectBudgets = build
  .selectFrom('budgets')
  .select(BUDGET_COLUMNS)
  // As subqueries: with bare parameters SQLite plans the statement again for every value.
  .where('subjectId', 'in', [
    sql<string>`(SELECT ${memberId})`,
    sql<string>`(SELECT ${projectId})`,
    sql<string>`(SELECT ${organizationId})`,
  ])
  .where('organizationId', '=', sql<string>`(SELECT ${organizationId})`)
  .orderBy('subjectId');

const selectShared = build
  .selectFrom('keys')
  .select(['id as subjectId', ...SPEND_COLUMNS])
  .where('id', '=', sharedId)
  .where('organizationId', '=', organizationId);

/** Remembers which keys no budget binds for as long as nothing changes, so that they cost no query. */
export function createBudgetReads({ connection }: Database, freshness: Freshness): BudgetReads {
  const statement = prepareHot(connection, [memberId, projectId, organizationId], selectBudgets.compile());
  const shared = prepareHot(connection, [sharedId, organizationId], selectShared.compile());
  const unbound = new FreshReads<true>(freshness, MAX_KEYS);
  const mayBind = (keyId: string): boolean => unbound.get(keyId) === undefined;
  return {
    mayBind,
    of(key, sharesLimitsOf) {
      const { keyId } = key;
      if (!mayBind(keyId)) return NONE;
      const epoch = freshness.lastEpoch();
      const budgets: Budget[] = statement.all(key.memberId, key.projectId, key.organizationId);
      if (sharesLimitsOf !== null) {
        const limits = shared.get(sharesLimitsOf, key.organizationId);
        if (limits !== undefined && isCapped(limits)) budgets.push({ ...limits, scope: 'shared' });
      }
      if (budgets.length > 0) return budgets;
      unbound.set(keyId, true, epoch);
      return NONE;
    },
  };
}
