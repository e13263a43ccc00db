import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { Row, SignInLinksTable } from '../db/tables.ts';

const COLUMNS = ['id', 'organizationId', 'memberId', 'createdAt', 'expiresAt', 'usedAt'] as const;

/** A link with which a member signs in once. */
export type SignInLinkRecord = Row<SignInLinksTable, (typeof COLUMNS)[number]>;

export type NewSignInLink = Omit<Row<SignInLinksTable>, 'createdAt' | 'usedAt'>;

export function insertSignInLink(db: Database, link: NewSignInLink, now: number): SignInLinkRecord {
  const { secretHash, ...record } = { ...link, createdAt: now, usedAt: null };
  db.run(build.insertInto('sign_in_links').values({ ...record, secretHash }));
  return record;
}

/** The link with this token, used and expired ones too: the query that finds the organization, and so carries none. */
export const findSignInLinkByHash = (db: Database, secretHash: string): SignInLinkRecord | undefined =>
  db.get(build.selectFrom('sign_in_links').select(COLUMNS).where('secretHash', '=', secretHash));

/** Uses a link up, once; undefined, and nothing is changed: it was used before. */
export function closeSignInLink(db: Database, link: SignInLinkRecord, now: number): SignInLinkRecord | undefined {
  const used = db.run(
    build
      .updateTable('sign_in_links')
      .set({ usedAt: now })
      .where('organizationId', '=', link.organizationId)
      .where('id', '=', link.id)
      .where('usedAt', 'is', null),
  );
  return used === 1 ? { ...link, usedAt: now } : undefined;
}

/** Deletes links of all organizations that expired before a time (epoch ms). @param limit how many at most */
export function deleteExpiredSignInLinks(db: Database, before: number, limit: number): void {
  db.run(
    build
      .deleteFrom('sign_in_links')
      .where('id', 'in', build.selectFrom('sign_in_links').select('id').where('expiresAt', '<', before).limit(limit)),
  );
}

/** Deletes the links of a member that were not used. */
export function deleteOpenSignInLinks(db: Database, organizationId: string, memberId: string): void {
  db.run(
    build
      .deleteFrom('sign_in_links')
      .where('organizationId', '=', organizationId)
      .where('memberId', '=', memberId)
      .where('usedAt', 'is', null),
  );
}
