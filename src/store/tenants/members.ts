import type { Selectable, Updateable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import { deleteBudget } from '../budgets/budgets.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { MembersTable, Role } from '../db/tables.ts';
import { insertSubject } from './insert-subject.ts';

export interface MemberRecord {
  readonly id: string;
  readonly organizationId: string;
  /** Lower case. */
  readonly email: string;
  readonly name: string | null;
  readonly role: Role;
  readonly createdAt: number;
  readonly updatedAt: number;
}

const toMember = (row: Selectable<MembersTable>): MemberRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  email: row.email,
  name: row.name,
  role: row.role,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

export interface NewMember {
  readonly id: string;
  readonly organizationId: string;
  readonly email: string;
  readonly name: string | null;
  readonly role: Role;
  /** Null: cannot sign in with a password. */
  readonly passwordHash: string | null;
}

/** Stores a member and makes them a subject of rules. An e-mail that a present member has violates a constraint. */
export function insertMember(db: Database, member: NewMember, now: number): MemberRecord {
  return db.transaction(() => {
    db.run(
      build.insertInto('members').values({
        id: member.id,
        organization_id: member.organizationId,
        email: member.email.toLowerCase(),
        name: member.name,
        role: member.role,
        password_hash: member.passwordHash,
        created_at: now,
        updated_at: now,
      }),
    );
    insertSubject(db, member.organizationId, member.id, 'member');
    return getMember(db, member.organizationId, member.id);
  });
}

/** A present member by membership id or e-mail, or undefined. */
export function findMember(db: Database, organizationId: string, idOrEmail: string): MemberRecord | undefined {
  const column = idOrEmail.includes('@') ? 'email' : 'id';
  const row = db.get(
    build
      .selectFrom('members')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where(column, '=', column === 'email' ? idOrEmail.toLowerCase() : idOrEmail)
      .where('removed_at', 'is', null),
  );
  return row === undefined ? undefined : toMember(row);
}

/** A present member by membership id or e-mail, or a 404. */
export function getMember(db: Database, organizationId: string, idOrEmail: string): MemberRecord {
  const member = findMember(db, organizationId, idOrEmail);
  if (member === undefined) throw notFound('There is no such member.');
  return member;
}

/** Present members, newest first. */
export function listMembers(db: Database, organizationId: string, page: PageRequest): Page<MemberRecord> {
  let query = build
    .selectFrom('members')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toMember), page.limit);
}

export interface MemberChanges {
  readonly name?: string | null;
  readonly role?: Role;
  readonly passwordHash?: string | null;
}

/** Changes a present member; 404 when there is none. */
export function updateMember(
  db: Database,
  organizationId: string,
  id: string,
  changes: MemberChanges,
  now: number,
): MemberRecord {
  const set: Updateable<MembersTable> = { updated_at: now };
  if (changes.name !== undefined) set.name = changes.name;
  if (changes.role !== undefined) set.role = changes.role;
  if (changes.passwordHash !== undefined) set.password_hash = changes.passwordHash;
  return db.transaction(() => {
    getMember(db, organizationId, id);
    db.run(build.updateTable('members').set(set).where('organization_id', '=', organizationId).where('id', '=', id));
    return getMember(db, organizationId, id);
  });
}

/** A present member with a password. */
export interface PasswordHolder {
  readonly member: MemberRecord;
  readonly passwordHash: string;
}

/** Those who may sign in with this e-mail and a password, in all organizations, the oldest first. @param limit how many at most */
export const findPasswordHolders = (db: Database, email: string, limit: number): PasswordHolder[] =>
  db
    .all(
      build
        .selectFrom('members')
        .selectAll()
        .where('email', '=', email.toLowerCase())
        .where('removed_at', 'is', null)
        .where('password_hash', 'is not', null)
        .orderBy('id')
        .limit(limit)
        .$narrowType<{ password_hash: string }>(),
    )
    .map((row) => ({ member: toMember(row), passwordHash: row.password_hash }));

/** Null: the member has none. Undefined: there is no such member. */
export const findPasswordHash = (db: Database, organizationId: string, id: string): string | null | undefined =>
  db.get(
    build
      .selectFrom('members')
      .select('password_hash')
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('removed_at', 'is', null),
  )?.password_hash;

/** How many members are present; of one role when it is named. */
export function countMembers(db: Database, organizationId: string, role?: Role): number {
  const query = build
    .selectFrom('members')
    .select((row) => row.fn.countAll<number>().as('count'))
    .where('organization_id', '=', organizationId)
    .where('removed_at', 'is', null);
  return db.get(role === undefined ? query : query.where('role', '=', role))?.count ?? 0;
}

/**
 * Removes a member with their budget, sessions and passkeys, disables every key of theirs (src/admin/README.md, "owner") and
 * deletes their master keys, which nobody could use any more; 404 when there is none.
 */
export function removeMember(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    getMember(db, organizationId, id);
    deleteBudget(db, organizationId, id);
    db.run(
      build
        .updateTable('members')
        .set({ removed_at: now, updated_at: now })
        .where('organization_id', '=', organizationId)
        .where('id', '=', id),
    );
    db.run(
      build
        .updateTable('keys')
        .set({ status: 'inactive', disabled_at: now, updated_at: now })
        .where('organization_id', '=', organizationId)
        .where('created_by', '=', id)
        .where('disabled_at', 'is', null),
    );
    db.run(
      build
        .updateTable('master_keys')
        .set({ deleted_at: now, updated_at: now })
        .where('organization_id', '=', organizationId)
        .where('member_id', '=', id)
        .where('deleted_at', 'is', null),
    );
    for (const table of ['sessions', 'sign_in_links', 'passkeys'] as const) {
      db.run(build.deleteFrom(table).where('organization_id', '=', organizationId).where('member_id', '=', id));
    }
  });
}
