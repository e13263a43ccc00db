import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { countRows } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { OAuthGrantsTable, Row } from '../db/tables.ts';

/** What the authorization server keeps of one code, token, client, grant, session or interaction. Times in epoch ms. */
export interface OAuthItem {
  /** `AccessToken`, `Client` and so on, as `oidc-provider` names its models. */
  readonly model: string;
  readonly id: string;
  readonly payload: unknown;
  /** What ends together: items of one grant, or of a client that acts for itself. */
  readonly grantId: string | null;
  readonly uid: string | null;
  /** Null: never. */
  readonly expiresAt: number | null;
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

export const consumeOAuthItem = (db: Database, model: string, id: string, now: number): void =>
  void db.run(
    build.updateTable('oauth_items').set({ consumedAt: now }).where('model', '=', model).where('id', '=', id),
  );

export const deleteOAuthItem = (db: Database, model: string, id: string): void =>
  void db.run(build.deleteFrom('oauth_items').where('model', '=', model).where('id', '=', id));

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

/** Clients that nobody has granted anything yet. */
export const countUnusedClients = (db: Database, now: number): number =>
  countRows(db, build.selectFrom('oauth_items').where('model', '=', 'Client').where('expiresAt', '>', now));

const GRANT_COLUMNS = ['id', 'organizationId', 'memberId', 'keyId', 'clientId', 'clientName', 'createdAt'] as const;

/** That a client may act with a key: by a member's consent, or by itself (client credentials). */
export type OAuthGrant = Row<OAuthGrantsTable, (typeof GRANT_COLUMNS)[number]>;

const openGrants = (organizationId: string, memberId: string) =>
  build
    .selectFrom('oauth_grants')
    .select(GRANT_COLUMNS)
    .where('organizationId', '=', organizationId)
    .where('memberId', '=', memberId)
    .where('endedAt', 'is', null);

/** Stores a grant; its client is kept from now on. */
export function insertOAuthGrant(db: Database, grant: Omit<OAuthGrant, 'createdAt'>, now: number): OAuthGrant {
  return db.transaction(() => {
    const row = { ...grant, createdAt: now };
    db.run(build.insertInto('oauth_grants').values(row));
    setClientExpiry(db, grant.clientId, null);
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

/** Whether a client may act by itself. */
export const isBoundClient = (db: Database, clientId: string): boolean => findOpenGrant(db, clientId) !== undefined;

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
    if (countRows(db, others) === 0) setClientExpiry(db, clientId, now + UNUSED_CLIENT_MS);
  });
}

const setClientExpiry = (db: Database, clientId: string, expiresAt: number | null): void =>
  void db.run(
    build
      .updateTable('oauth_items')
      .set({ expiresAt: expiresAt })
      .where('model', '=', 'Client')
      .where('id', '=', clientId),
  );

/** The models of tokens with which the gateway can be called. */
const ACCESS_MODELS = ['AccessToken', 'ClientCredentials'] as const;

/**
 * What an access token stands for, by the hash of the token: no organization is known before. Undefined: there is none, or it has
 * expired, or its grant has ended.
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
      .where('oauth_grants.endedAt', 'is', null),
  );
}
