import { type ApiError, notFound } from '../../domain/errors.ts';
import { hashSecret, isWellFormedSecret, newId, type Pepper } from '../../domain/id.ts';
import { DAY, formatTime } from '../../domain/time.ts';
import { optional } from '../../lib/collections.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/sign-in/sign-in-records.ts';
import { findMember, getMember, type MemberRecord } from '../../store/tenants/member-records.ts';
import { getOrganization, isEmpty } from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization, checkManagesRole, recordChange } from '../audit/audit-trail.ts';
import { newSecret, type SecretWrite } from '../keys/new-secret.ts';
import { addTenant } from '../tenants/organizations.ts';

/** A link can be used for so long. */
const LIFE_MS = DAY;
/** Expired ones that a new one clears away. */
const SWEPT = 50;

/** A new link; its token is nowhere else. */
export interface SignInLink {
  readonly id: string;
  readonly memberId: string;
  readonly email: string;
  readonly expiresAt: string;
  readonly token: string;
}

const viewLink = (link: store.SignInLinkRecord) => ({
  id: link.id,
  memberId: link.memberId,
  createdAt: formatTime(link.createdAt),
  expiresAt: formatTime(link.expiresAt),
  usedAt: optional(link.usedAt, formatTime),
});

/**
 * Makes a link with which a member signs in once, within a day; 404 when there is no such member. The link alone signs in as the
 * member, so only the command line makes links.
 */
export function createSignInLink(
  db: Database,
  actor: Actor,
  idOrEmail: string,
  { now, pepper }: SecretWrite,
): SignInLink {
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const { id: memberId, email, role } = getMember(db, organizationId, idOrEmail);
    checkManagesRole(actor, role);
    store.deleteExpiredSignInLinks(db, now, SWEPT);
    const { token, secretHash } = newSecret('link', pepper);
    const wanted = { id: newId('link'), organizationId, memberId, secretHash, expiresAt: now + LIFE_MS };
    const link = store.insertSignInLink(db, wanted, now);
    recordChange(db, actor, 'sign_in_link', 'create', { before: null, after: viewLink(link) }, now);
    return { id: link.id, memberId, email, expiresAt: formatTime(link.expiresAt), token };
  });
}

interface Reading {
  /** Epoch ms. */
  readonly now: number;
  /** Accepted ones, the current one first. */
  readonly peppers: readonly Pepper[];
}

/** The member that a link signs in. @throws ApiError 404 when it is unknown, used or expired, or the member has left */
export function readSignInLink(
  db: Database,
  token: string,
  reading: Reading,
): { readonly member: MemberRecord; readonly organizationName: string } {
  const { member } = openLink(db, token, reading);
  return { member, organizationName: getOrganization(db, member.organizationId).name };
}

/** Uses a link up. @returns the member that it signs in. @throws ApiError 404 as above */
export function useSignInLink(db: Database, token: string, reading: Reading): MemberRecord {
  return db.transaction(() => {
    const { link, member } = openLink(db, token, reading);
    const used = store.closeSignInLink(db, link, reading.now);
    if (used === undefined) throw noLink();
    const { organizationId } = member;
    recordChange(
      db,
      { kind: 'person', organizationId, memberId: member.id },
      'sign_in_link',
      'use',
      { before: viewLink(link), after: viewLink(used) },
      reading.now,
    );
    return member;
  });
}

function openLink(
  db: Database,
  token: string,
  { now, peppers }: Reading,
): { readonly link: store.SignInLinkRecord; readonly member: MemberRecord } {
  const hashes = isWellFormedSecret(token, 'link') ? peppers.map((pepper) => hashSecret(token, pepper)) : [];
  const [link] = hashes.flatMap((hash) => store.findSignInLinkByHash(db, hash) ?? []);
  const isOpen = link !== undefined && link.usedAt === null && link.expiresAt > now;
  const member = isOpen ? findMember(db, link.organizationId, link.memberId) : undefined;
  if (link === undefined || member === undefined) {
    throw noLink();
  }
  return { link, member };
}

const noLink = (): ApiError =>
  notFound('This link has been used, has expired, or was never made. Ask for another one.');

/** Records and secrets that the first start created. The secrets are shown here and never again. */
export interface FirstRun {
  readonly organizationId: string;
  readonly projectId: string;
  readonly ownerEmail: string;
  readonly masterKey: string;
  readonly gatewayKey: string;
  /** Token of the link with which the owner first signs in. */
  readonly signInToken: string;
}

/** The e-mail address of the first owner, until they change it. */
const OWNER_EMAIL = 'owner@localhost';

/**
 * Creates, in an empty database, an organization, a project, an owner with a sign-in link, a master key and a gateway key
 * (src/admin/README.md, "first run"). Otherwise it changes nothing and returns undefined. The caller opens the transaction.
 */
export function firstRun(db: Database, pepper: Pepper, now: number): FirstRun | undefined {
  if (!isEmpty(db)) return undefined;
  const { token: gatewayKey, ...secret } = newSecret('gateway', pepper);
  const wanted = { name: 'Default', ownerEmail: OWNER_EMAIL, gatewayKey: secret };
  const { organization, project, owner, masterKey } = addTenant(db, wanted, { now, pepper });
  const cli: Actor = { kind: 'cli', organizationId: organization.id };
  const { token: signInToken } = createSignInLink(db, cli, owner.id, { now, pepper });
  return {
    organizationId: organization.id,
    projectId: project.id,
    ownerEmail: owner.email,
    masterKey: masterKey.token,
    gatewayKey,
    signInToken,
  };
}
