import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';

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
  const changing = {
    payload_json: JSON.stringify(item.payload),
    grant_id: item.grantId,
    uid: item.uid,
    expires_at: item.expiresAt,
  };
  db.run(
    build
      .insertInto('oauth_items')
      .values({ model: item.model, id: item.id, ...changing, created_at: now })
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
    .select(['payload_json', 'consumed_at'])
    .where('model', '=', model)
    .where((row) => row.or([row('expires_at', 'is', null), row('expires_at', '>', now)]));
  const row = db.get('id' in by ? query.where('id', '=', by.id) : query.where('uid', '=', by.uid));
  return row === undefined ? undefined : { payload: JSON.parse(row.payload_json), consumedAt: row.consumed_at };
}

export const consumeOAuthItem = (db: Database, model: string, id: string, now: number): void =>
  void db.run(
    build.updateTable('oauth_items').set({ consumed_at: now }).where('model', '=', model).where('id', '=', id),
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
            .where('expires_at', '<=', now)
            .limit(limit)
            .$asTuple('model', 'id'),
        ),
      ),
  );

/** Clients that nobody has granted anything yet. */
export const countUnusedClients = (db: Database, now: number): number =>
  db.get(
    build
      .selectFrom('oauth_items')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('model', '=', 'Client')
      .where('expires_at', '>', now),
  )?.count ?? 0;

/** That a client may act with a key: by a member's consent, or by itself (client credentials). */
export interface OAuthGrant {
  /** The authorization server's id of the grant; the client's id where it acts by itself. */
  readonly id: string;
  readonly organizationId: string;
  /** Who allowed it. */
  readonly memberId: string;
  readonly keyId: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly createdAt: number;
}

const GRANT_COLUMNS = [
  'id',
  'organization_id as organizationId',
  'member_id as memberId',
  'key_id as keyId',
  'client_id as clientId',
  'client_name as clientName',
  'created_at as createdAt',
] as const;

/** Stores a grant; its client is kept from now on. */
export function insertOAuthGrant(db: Database, grant: Omit<OAuthGrant, 'createdAt'>, now: number): OAuthGrant {
  return db.transaction(() => {
    db.run(
      build.insertInto('oauth_grants').values({
        id: grant.id,
        organization_id: grant.organizationId,
        member_id: grant.memberId,
        key_id: grant.keyId,
        client_id: grant.clientId,
        client_name: grant.clientName,
        created_at: now,
      }),
    );
    setClientExpiry(db, grant.clientId, null);
    return { ...grant, createdAt: now };
  });
}

/** Open grants of a member, newest first, at most so many. */
export const listOAuthGrants = (db: Database, organizationId: string, memberId: string, limit: number): OAuthGrant[] =>
  db.all(
    build
      .selectFrom('oauth_grants')
      .select(GRANT_COLUMNS)
      .where('organization_id', '=', organizationId)
      .where('member_id', '=', memberId)
      .where('ended_at', 'is', null)
      .orderBy('created_at', 'desc')
      .limit(limit),
  );

/** An open grant of a member, or a 404. */
export function getOAuthGrant(db: Database, organizationId: string, memberId: string, id: string): OAuthGrant {
  const grant = db.get(
    build
      .selectFrom('oauth_grants')
      .select(GRANT_COLUMNS)
      .where('id', '=', id)
      .where('organization_id', '=', organizationId)
      .where('member_id', '=', memberId)
      .where('ended_at', 'is', null),
  );
  if (grant === undefined) throw notFound('There is no such application.');
  return grant;
}

/** Whether a client may act by itself. */
export const isBoundClient = (db: Database, clientId: string): boolean => findOpenGrant(db, clientId) !== undefined;

/** Without an organization: the authorization server knows grants by their ids alone. */
export const findOpenGrant = (db: Database, id: string): OAuthGrant | undefined =>
  db.get(build.selectFrom('oauth_grants').select(GRANT_COLUMNS).where('id', '=', id).where('ended_at', 'is', null));

/** For how long a client is kept that nobody grants anything, in ms. */
export const UNUSED_CLIENT_MS = 86_400_000;

/** Ends a grant: its tokens and codes are gone. A client without another grant is kept for a day. Without such a grant nothing is done. */
export function endOAuthGrant(db: Database, id: string, now: number): void {
  db.transaction(() => {
    db.run(build.deleteFrom('oauth_items').where('grant_id', '=', id));
    deleteOAuthItem(db, 'Grant', id);
    const clientId = findOpenGrant(db, id)?.clientId;
    if (clientId === undefined) return;
    db.run(build.updateTable('oauth_grants').set({ ended_at: now }).where('id', '=', id));
    const other = build.selectFrom('oauth_grants').select('id').where('client_id', '=', clientId);
    if (db.get(other.where('ended_at', 'is', null).limit(1)) === undefined)
      setClientExpiry(db, clientId, now + UNUSED_CLIENT_MS);
  });
}

const setClientExpiry = (db: Database, clientId: string, expiresAt: number | null): void =>
  void db.run(
    build
      .updateTable('oauth_items')
      .set({ expires_at: expiresAt })
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
      .innerJoin('oauth_grants', 'oauth_grants.id', 'oauth_items.grant_id')
      .select(['oauth_grants.key_id as keyId', sql<string | null>`payload_json ->> 'aud'`.as('audience')])
      .where('oauth_items.model', 'in', ACCESS_MODELS)
      .where('oauth_items.id', '=', idHash)
      .where('oauth_items.expires_at', '>', now)
      .where('oauth_grants.ended_at', 'is', null),
  );
}
