import { keyState } from '../../domain/api-key.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { clientHost } from '../../domain/oauth-token.ts';
import { formatTime } from '../../domain/time.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/sign-in/oauth.ts';
import { getKey } from '../../store/tenants/keys.ts';
import { type Person, recordChange } from '../audit/audit-trail.ts';

/** Applications that one member lets act with keys. */
const MAX_GRANTS = 200;

/** What the audit log says of a grant. */
const viewGrant = (grant: store.OAuthGrant) => ({
  id: grant.id,
  memberId: grant.memberId,
  keyId: grant.keyId,
  clientId: grant.clientId,
  clientName: grant.clientName,
  createdAt: formatTime(grant.createdAt),
});

export interface WantedGrant {
  readonly id: string;
  readonly keyId: string;
  readonly clientId: string;
  readonly clientName: string;
}

/**
 * Lets an application act with a key of the person's own, as long as the key may be used. What they allowed the same application
 * before ends, unless it is named by the URL of its metadata: then it has that name on all of the person's machines.
 * 404 for a key that they do not see, 400 for one that is not theirs or may not be used, and beyond 200 applications.
 * @param now epoch ms
 */
export function allowApplication(db: Database, person: Person, wanted: WantedGrant, now: number): store.OAuthGrant {
  const { organizationId, memberId } = person;
  return db.transaction(() => {
    const key = getKey(db, organizationId, wanted.keyId);
    if (key.createdBy !== memberId || key.kind !== 'regular')
      throw invalidRequest('An application can act with a key of your own only.');
    const state = keyState(key, now);
    if (state === 'disabled' || state === 'expired') throw invalidRequest(`This key is ${state}. Choose another one.`);
    const open = store.listOAuthGrants(db, organizationId, memberId, MAX_GRANTS);
    const isOneInstallation = clientHost(wanted.clientId) === undefined;
    const replaced = open.filter(({ clientId }) => isOneInstallation && clientId === wanted.clientId);
    for (const { id } of replaced) endApplication(db, person, id, now);
    if (open.length - replaced.length >= MAX_GRANTS) {
      throw invalidRequest(`You have let ${MAX_GRANTS} applications act for you. End one of them first.`);
    }
    const grant = store.insertOAuthGrant(db, { ...wanted, organizationId, memberId }, now);
    recordChange(db, person, 'oauth_grant', 'create', { before: null, after: viewGrant(grant) }, now);
    return grant;
  });
}

/** The applications that act for a person, newest first. */
export const listApplications = (db: Database, { organizationId, memberId }: Person): store.OAuthGrant[] =>
  store.listOAuthGrants(db, organizationId, memberId, MAX_GRANTS);

/** Ends what an application may do: its tokens are worth nothing from now on. 404 when there is none. @param now epoch ms */
export function endApplication(db: Database, person: Person, id: string, now: number): void {
  db.transaction(() => {
    const grant = store.getOAuthGrant(db, person.organizationId, person.memberId, id);
    store.endOAuthGrant(db, id, now);
    recordChange(db, person, 'oauth_grant', 'delete', { before: viewGrant(grant), after: null }, now);
  });
}

/**
 * Ends a grant for the authorization server, if it is open: the application revoked a token, or used a code or a refresh token twice.
 * @param now epoch ms
 */
export function endGrant(db: Database, id: string, now: number): void {
  db.transaction(() => {
    const grant = store.findOpenGrant(db, id);
    store.endOAuthGrant(db, id, now);
    if (grant === undefined) return;
    const job = { kind: 'job', name: 'oauth', organizationId: grant.organizationId } as const;
    recordChange(db, job, 'oauth_grant', 'delete', { before: viewGrant(grant), after: null }, now);
  });
}
