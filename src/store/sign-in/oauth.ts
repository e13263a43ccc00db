import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { countRows } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { OAuthGrantsTable, Row } from '../db/tables.ts';

/** The authorization server's record of one code, token, client, grant, session or interaction. Times in epoch ms. */
export interface OAuthItem {
  /** `AccessToken`, `Client` and so on, as `oidc-provider` names its models. */
  readonly model: string;
  readonly id: string;
  readonly payload: unknown;
  /** Items that end together: those of one grant, or of a client that acts for itself. */
  readonly grantId: string | null;
  readonly uid: string | null;
  /** Null: never. */
  readonly expiresAt: number | null;
  /** For a client: its registrant. */
  readonly registrant: string | null;
}

export type StoredItem = Pick<OAuthItem, 'payload'> & { readonly consumedAt: number | null };

/** Stores an item, or stores it again. */
export function putOAuthItem(db: Database, item: OAuthItem, now: number): void {
  const { payload, model, id, ...columns } = item;
  const changing = { ...columns, payloadJson: JSON.stringify(payload) };
  db.run(
    build
      .insertInto('oauth_items')
      .values({ ...changing, model, id, createdAt: now })
      .onConflict((conflict) => conflict.columns(['model', 'id']).doUpdateSet(changing)),
  );
}

/** An item that has not expired, by its id or uid. */
export function findOAuthItem(
  db: Database,
  model: string,
  by: { readonly id: string } | { readonly uid: string },
  now: number,
): StoredItem | undefined {
  const query = build
    .selectFrom('oauth_items')
    .select(['payloadJson', 'consumedAt'])
    .where('model', '=', model)
    .where((row) => row.or([row('expiresAt', 'is', null), row('expiresAt', '>', now)]));
  const row = db.get('id' in by ? query.where('id', '=', by.id) : query.where('uid', '=', by.uid));
  return row === undefined ? undefined : { payload: JSON.parse(row.payloadJson), consumedAt: row.consumedAt };
}

/** Uses an item up. False, and nothing is changed: it was used before, or is gone. */
export const consumeOAuthItem = (db: Database, model: string, id: string, now: number): boolean =>
  db.run(
    build
      .updateTable('oauth_items')
      .set({ consumedAt: now })
      .where('model', '=', model)
      .where('id', '=', id)
      .where('consumedAt', 'is', null),
  ) === 1;

/** The grant to which an item belongs, used up or not. */
export const findGrantOfItem = (db: Database, model: string, id: string): string | undefined =>
  db.get(build.selectFrom('oauth_items').select('grantId').where('model', '=', model).where('id', '=', id))?.grantId ??
  undefined;

/** False: it was not there. */
export const deleteOAuthItem = (db: Database, model: string, id: string): boolean =>
  db.run(build.deleteFrom('oauth_items').where('model', '=', model).where('id', '=', id)) === 1;

/** Deletes what expired, at most so many; returns how many. */
export const deleteExpiredOAuthItems = (db: Database, now: number, limit: number): number =>
  db.run(
    build
      .deleteFrom('oauth_items')
      .where(({ eb, refTuple }) =>
        eb(
          refTuple('model', 'id'),
          'in',
          build
            .selectFrom('oauth_items')
            .select(['model', 'id'])
            .where('expiresAt', '<=', now)
            .limit(limit)
            .$asTuple('model', 'id'),
        ),
      ),
  );

/** The party that registers a client: an address without a key, a key, or a member on the page of applications. */
export type Registrant = `network:${string}` | `key:${string}` | `member:${string}`;

/** Clients that nobody has allowed yet, or whose last grant has ended: they are forgotten after a day. */
const waitingClients = build.selectFrom('oauth_items').where('model', '=', 'Client').where('expiresAt', 'is not', null);

const waitingOfNetworks = waitingClients.where('registrant', '>=', 'network:').where('registrant', '<', 'network;');

/** Counts the clients of a registrant that wait. */
export const countWaitingClients = (db: Database, registrant: Registrant): number =>
  countRows(db, waitingClients.where('registrant', '=', registrant));

/** Counts the clients of all addresses that wait. */
export const countWaitingOfNetworks = (db: Database): number => countRows(db, waitingOfNetworks);

/** The address with the most clients that wait. */
export const findMostWaiting = (db: Database): { readonly registrant: string; readonly count: number } | undefined =>
  db.get(
    waitingOfNetworks
      .select(['registrant', ({ fn }) => fn.countAll<number>().as('count')])
      .groupBy('registrant')
      .orderBy('count', 'desc')
      .limit(1)
      .$narrowType<{ registrant: string }>(),
  );

/** Forgets the client of a registrant that waits longest, if it was registered before a time (epoch ms). False: there is none. */
export const forgetOldestWaiting = (db: Database, registrant: string, before: number): boolean =>
  db.run(
    build
      .deleteFrom('oauth_items')
      .where('model', '=', 'Client')
      .where(
        'id',
        'in',
        waitingClients
          .select('id')
          .where('registrant', '=', registrant)
          .where('createdAt', '<', before)
          .orderBy('createdAt')
          .limit(1),
      ),
  ) === 1;

const GRANT_COLUMNS = [
  'id',
  'organizationId',
  'memberId',
  'keyId',
  'clientId',
  'clientName',
  'createdAt',
  'isRegisteredByKey',
  'endsAt',
] as const;

/** Permission for a client to act with a key: by a member's consent, or by itself (client credentials). */
export type OAuthGrant = Row<OAuthGrantsTable, (typeof GRANT_COLUMNS)[number]>;

const openGrants = (organizationId: string, memberId: string) =>
  build
    .selectFrom('oauth_grants')
    .select(GRANT_COLUMNS)
    .where('organizationId', '=', organizationId)
    .where('memberId', '=', memberId)
    .where('endedAt', 'is', null);

/** Stores a grant; its client is kept from now on, and the address that registered it is forgotten. */
export function insertOAuthGrant(db: Database, grant: Omit<OAuthGrant, 'createdAt'>, now: number): OAuthGrant {
  return db.transaction(() => {
    const row = { ...grant, createdAt: now };
    db.run(build.insertInto('oauth_grants').values(row));
    db.run(
      build
        .updateTable('oauth_items')
        .set({
          expiresAt: null,
          registrant: sql<string | null>`CASE WHEN registrant LIKE 'network:%' THEN NULL ELSE registrant END`,
        })
        .where('model', '=', 'Client')
        .where('id', '=', grant.clientId),
    );
    return row;
  });
}

/** Open grants of a member, newest first, at most so many. */
export const listOAuthGrants = (db: Database, organizationId: string, memberId: string, limit: number): OAuthGrant[] =>
  db.all(openGrants(organizationId, memberId).orderBy('createdAt', 'desc').limit(limit));

/** An open grant of a member, or a 404. */
export function getOAuthGrant(db: Database, organizationId: string, memberId: string, id: string): OAuthGrant {
  const grant = db.get(openGrants(organizationId, memberId).where('id', '=', id));
  if (grant === undefined) throw notFound('There is no such application.');
  return grant;
}

/** Origin of grants: a key, the keys of a project, a member. */
export type GrantSource = { readonly keyId: string } | { readonly projectId: string } | { readonly memberId: string };

/** All open grants that come from this, oldest first. */
export function listGrantsFrom(db: Database, organizationId: string, source: GrantSource): OAuthGrant[] {
  const open = build
    .selectFrom('oauth_grants')
    .select(GRANT_COLUMNS)
    .where('organizationId', '=', organizationId)
    .where('endedAt', 'is', null)
    .orderBy('createdAt')
    .orderBy('id');
  if ('keyId' in source) return db.all(open.where('keyId', '=', source.keyId));
  if ('memberId' in source) return db.all(open.where('memberId', '=', source.memberId));
  const keys = build
    .selectFrom('keys')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('projectId', '=', source.projectId);
  return db.all(open.where('keyId', 'in', keys));
}

/** Makes a grant end by itself, at a time in epoch ms. */
export const setGrantEnd = (db: Database, organizationId: string, id: string, endsAt: number): void =>
  void db.run(
    build.updateTable('oauth_grants').set({ endsAt }).where('organizationId', '=', organizationId).where('id', '=', id),
  );

/** Grants of all organizations whose end has come. @param limit how many at most */
export const listDueGrants = (db: Database, now: number, limit: number): OAuthGrant[] =>
  db.all(
    build
      .selectFrom('oauth_grants')
      .select(GRANT_COLUMNS)
      .where('endedAt', 'is', null)
      .where('endsAt', '<=', now)
      .orderBy('endsAt')
      .limit(limit),
  );

/** Without an organization: the authorization server knows grants by their ids alone. */
export const findOpenGrant = (db: Database, id: string): OAuthGrant | undefined =>
  db.get(build.selectFrom('oauth_grants').select(GRANT_COLUMNS).where('id', '=', id).where('endedAt', 'is', null));

/** For how long a client is kept that nobody grants anything, in ms. */
export const UNUSED_CLIENT_MS = 86_400_000;

/** Ends a grant: its tokens and codes are gone. A client without another grant is kept for a day. Without such a grant nothing is done. */
export function endOAuthGrant(db: Database, id: string, now: number): void {
  db.transaction(() => {
    db.run(build.deleteFrom('oauth_items').where('grantId', '=', id));
    deleteOAuthItem(db, 'Grant', id);
    const clientId = findOpenGrant(db, id)?.clientId;
    if (clientId === undefined) return;
    db.run(build.updateTable('oauth_grants').set({ endedAt: now }).where('id', '=', id));
    const others = build.selectFrom('oauth_grants').where('clientId', '=', clientId).where('endedAt', 'is', null);
    if (countRows(db, others) > 0) return;
    db.run(
      build
        .updateTable('oauth_items')
        .set({ expiresAt: now + UNUSED_CLIENT_MS })
        .where('model', '=', 'Client')
        .where('id', '=', clientId),
    );
  });
}

/** The models of tokens with which the gateway can be called. */
const ACCESS_MODELS = ['AccessToken', 'ClientCredentials'] as const;

/**
 * Finds the key and audience of an access token by the token's hash: the organization is not known before. Undefined: there is
 * no such token, it has expired, or its grant has ended.
 */
export function findOAuthAccess(
  db: Database,
  idHash: string,
  now: number,
): { readonly keyId: string; readonly audience: string | null } | undefined {
  return db.get(
    build
      .selectFrom('oauth_items')
      .innerJoin('oauth_grants', 'oauth_grants.id', 'oauth_items.grantId')
      .select(['oauth_grants.keyId', sql<string | null>`payloadJson ->> 'aud'`.as('audience')])
      .where('oauth_items.model', 'in', ACCESS_MODELS)
      .where('oauth_items.id', '=', idHash)
      .where('oauth_items.expiresAt', '>', now)
      .where('oauth_grants.endedAt', 'is', null)
      .where((row) => row.or([row('oauth_grants.endsAt', 'is', null), row('oauth_grants.endsAt', '>', now)])),
  );
}
