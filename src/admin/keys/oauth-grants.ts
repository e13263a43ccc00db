import { type KeyState, keyState } from '../../domain/api-key.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { clientHost } from '../../domain/identity.ts';
import { formatTime } from '../../domain/time.ts';
import type { RolledApplications } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/sign-in/oauth.ts';
import { findKey, getKey } from '../../store/tenants/key-records.ts';
import { findMember } from '../../store/tenants/member-records.ts';
import { findProject } from '../../store/tenants/tenants.ts';
import { type Actor, type Job, type Person, recordChange } from '../audit/audit-trail.ts';

/** Applications that one member lets act with keys. */
const MAX_GRANTS = 200;

/** A grant as the audit log and the command line show it. */
const viewGrant = (grant: store.OAuthGrant) => ({
  id: grant.id,
  memberId: grant.memberId,
  keyId: grant.keyId,
  clientId: grant.clientId,
  clientName: grant.clientName,
  createdAt: formatTime(grant.createdAt),
  ...(grant.endsAt === null ? {} : { endsAt: formatTime(grant.endsAt) }),
});

export interface WantedGrant {
  readonly id: string;
  readonly keyId: string;
  readonly clientId: string;
  readonly clientName: string;
  /** End of the secret that makes the grant, where no signed-in member makes it (epoch ms; null: with the next roll). */
  readonly secretEndsAt?: number | null;
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
    const { secretEndsAt, ...named } = wanted;
    const origin = { isRegisteredByKey: secretEndsAt === undefined ? 0 : 1, endsAt: secretEndsAt ?? null };
    const grant = store.insertOAuthGrant(db, { ...named, ...origin, organizationId, memberId }, now);
    recordChange(db, person, 'oauth_grant', 'create', { before: null, after: viewGrant(grant) }, now);
    return grant;
  });
}

/** The applications that act for a person, newest first. */
export const listApplications = (db: Database, { organizationId, memberId }: Person): store.OAuthGrant[] =>
  store.listOAuthGrants(db, organizationId, memberId, MAX_GRANTS);

/** Ends what an application may do: its tokens are worth nothing from now on. 404 when there is none. @param now epoch ms */
export function endApplication(db: Database, person: Person, id: string, now: number): void {
  db.transaction(() => end(db, person, store.getOAuthGrant(db, person.organizationId, person.memberId, id), now));
}

/**
 * Ends a grant for the authorization server, if it is open: the application revoked a token, used a code or a refresh token twice, or
 * what the grant came from is gone. @param now epoch ms
 */
export function endGrant(db: Database, id: string, now: number): void {
  db.transaction(() => {
    const grant = store.findOpenGrant(db, id);
    if (grant === undefined) store.endOAuthGrant(db, id, now);
    else end(db, jobOf(grant), grant, now);
  });
}

/** Ends all grants that come from a key, a project's keys or a member, which are gone. @param now epoch ms */
export function endGrantsFrom(db: Database, actor: Actor, source: store.GrantSource, now: number): void {
  db.transaction(() => {
    for (const grant of store.listGrantsFrom(db, actor.organizationId, source)) end(db, actor, grant, now);
  });
}

/** Which applications of a key end when it is rolled. */
export const ROLL_ENDS = ['registered', 'all', 'none'] as const;
export type RollEnds = (typeof ROLL_ENDS)[number];

/**
 * Ends the applications of a key that is rolled: by default those that registered with the old secret, which end with it.
 * @param oldEndsAt epoch ms, when the old secret ends by itself; null: now. @param now epoch ms
 */
export function endRolledGrants(
  db: Database,
  actor: Actor,
  keyId: string,
  ends: RollEnds,
  { oldEndsAt, now }: { readonly oldEndsAt: number | null; readonly now: number },
): RolledApplications {
  const { organizationId } = actor;
  const isMeant = ({ isRegisteredByKey, endsAt }: store.OAuthGrant): boolean =>
    ends === 'all' || endsAt !== null || (ends === 'registered' && isRegisteredByKey === 1);
  const ended: store.OAuthGrant[] = [];
  const kept: store.OAuthGrant[] = [];
  db.transaction(() => {
    for (const grant of store.listGrantsFrom(db, organizationId, { keyId })) {
      if (!isMeant(grant)) kept.push(grant);
      // A grant of the secret before the old one: that ends now in any case.
      else if (oldEndsAt === null || grant.endsAt !== null) ended.push(end(db, actor, grant, now));
      else ended.push(endLater(db, actor, grant, oldEndsAt, now));
    }
  });
  return { ended: ended.map(viewGrant), kept: kept.map(viewGrant) };
}

/** Ends those grants of a key that wait for the end of its old secret, which ends now. @param now epoch ms */
export function endGrantsOfOldSecret(db: Database, actor: Actor, keyId: string, now: number): void {
  db.transaction(() => {
    for (const grant of store.listGrantsFrom(db, actor.organizationId, { keyId })) {
      if (grant.endsAt !== null) end(db, actor, grant, now);
    }
  });
}

/** Ends up to so many grants of all organizations whose time has come; returns how many. @param now epoch ms */
export function endDueGrants(db: Database, now: number, limit: number): number {
  return db.transaction(() => {
    const due = store.listDueGrants(db, now, limit);
    for (const grant of due) end(db, jobOf(grant), grant, now);
    return due.length;
  });
}

/**
 * Whether a grant gives anything now. One whose key has been deleted or has expired, whose project or member is gone, or whose time has
 * come, ends with that. One whose key is disabled gives nothing, and waits for the key. @param now epoch ms
 */
export function givesAccess(db: Database, id: string, now: number): boolean {
  return db.transaction(() => {
    const grant = store.findOpenGrant(db, id);
    if (grant === undefined) return false;
    const state = stateBehind(db, grant, now);
    if (state === 'deleted' || state === 'expired') end(db, jobOf(grant), grant, now);
    return state === 'active' || state === 'limit_reached';
  });
}

/** The state of the key behind a grant; a key without its project or its member counts as deleted. */
function stateBehind(db: Database, grant: store.OAuthGrant, now: number): KeyState {
  const { organizationId, endsAt } = grant;
  const key = findKey(db, organizationId, grant.keyId);
  const isThere =
    key !== undefined &&
    (endsAt === null || endsAt > now) &&
    findMember(db, organizationId, key.createdBy) !== undefined &&
    findProject(db, organizationId, key.projectId) !== undefined;
  return isThere ? keyState(key, now) : 'deleted';
}

const jobOf = ({ organizationId }: store.OAuthGrant): Job => ({ kind: 'job', name: 'oauth', organizationId });

function end(db: Database, actor: Actor | Person | Job, grant: store.OAuthGrant, now: number): store.OAuthGrant {
  store.endOAuthGrant(db, grant.id, now);
  recordChange(db, actor, 'oauth_grant', 'delete', { before: viewGrant(grant), after: null }, now);
  return grant;
}

function endLater(db: Database, actor: Actor, grant: store.OAuthGrant, endsAt: number, now: number): store.OAuthGrant {
  const changed = { ...grant, endsAt };
  store.setGrantEnd(db, grant.organizationId, grant.id, endsAt);
  recordChange(db, actor, 'oauth_grant', 'update', { before: viewGrant(grant), after: viewGrant(changed) }, now);
  return changed;
}
