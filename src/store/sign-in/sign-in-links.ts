import type { Selectable } from 'kysely';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { SignInLinksTable } from '../db/tables.ts';

/** A link with which a member signs in once. Times in epoch ms. */
export interface SignInLinkRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly memberId: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly usedAt: number | null;
}

export interface NewSignInLink extends Omit<SignInLinkRecord, 'createdAt' | 'usedAt'> {
  readonly secretHash: string;
}

const toLink = (row: Selectable<SignInLinksTable>): SignInLinkRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  memberId: row.member_id,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  usedAt: row.used_at,
});

export function insertSignInLink(db: Database, link: NewSignInLink, now: number): SignInLinkRecord {
  const row = {
    id: link.id,
    organization_id: link.organizationId,
    member_id: link.memberId,
    secret_hash: link.secretHash,
    created_at: now,
    expires_at: link.expiresAt,
    used_at: null,
  };
  db.run(build.insertInto('sign_in_links').values(row));
  return toLink(row);
}

/** The link with this token, used and expired ones too: the query that finds the organization, and so carries none. */
export function findSignInLinkByHash(db: Database, secretHash: string): SignInLinkRecord | undefined {
  const row = db.get(build.selectFrom('sign_in_links').selectAll().where('secret_hash', '=', secretHash));
  return row === undefined ? undefined : toLink(row);
}

/** Notes that a link was used. */
export function closeSignInLink(db: Database, link: SignInLinkRecord, now: number): SignInLinkRecord {
  db.run(
    build
      .updateTable('sign_in_links')
      .set({ used_at: now })
      .where('organization_id', '=', link.organizationId)
      .where('id', '=', link.id),
  );
  return { ...link, usedAt: now };
}

/** Deletes links of all organizations that expired before a time (epoch ms). @param limit how many at most */
export function deleteExpiredSignInLinks(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_links')
      .where('id', 'in', build.selectFrom('sign_in_links').select('id').where('expires_at', '<', before).limit(limit)),
  );
}
