import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { countRows, insertSubject, type Page, type PageRequest, raiseRuleRevision, readPage } from '../db/records.ts';
import { build } from '../db/sql.ts';
import type { GroupsTable, Role, Row } from '../db/tables.ts';

const COLUMNS = ['id', 'organizationId', 'name', 'description', 'createdAt', 'updatedAt'] as const;

export type GroupRow = Row<GroupsTable, (typeof COLUMNS)[number]>;
export type NewGroup = Pick<GroupRow, 'id' | 'organizationId' | 'name' | 'description'>;
export type GroupChanges = Partial<Pick<GroupRow, 'name' | 'description'>>;

const present = (organizationId: string) =>
  build.selectFrom('groups').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

/** Stores a group and makes it a subject of rules. A name that a present group has violates a constraint. */
export function insertGroup(db: Database, group: NewGroup, now: number): GroupRow {
  return db.transaction(() => {
    db.run(build.insertInto('groups').values({ ...group, createdAt: now, updatedAt: now }));
    insertSubject(db, group.organizationId, group.id, 'group');
    return getGroup(db, group.organizationId, group.id);
  });
}

/** The group, or a 404 when it is missing, deleted, or of another organization. */
export function getGroup(db: Database, organizationId: string, id: string): GroupRow {
  const group = db.get(present(organizationId).select(COLUMNS).where('id', '=', id));
  if (group === undefined) throw notFound('There is no such group.');
  return group;
}

/** The present group of this name. */
export const findGroupByName = (db: Database, organizationId: string, name: string): GroupRow | undefined =>
  db.get(present(organizationId).select(COLUMNS).where('name', '=', name));

/** Groups that are not deleted, newest first. */
export const listGroups = (db: Database, organizationId: string, page: PageRequest): Page<GroupRow> =>
  readPage(db, present(organizationId).select(COLUMNS), page);

export const countGroups = (db: Database, organizationId: string): number => countRows(db, present(organizationId));

/** Changes the name or description of a group; 404 when there is none. */
export function updateGroup(
  db: Database,
  organizationId: string,
  id: string,
  changes: GroupChanges,
  now: number,
): GroupRow {
  db.run(
    build
      .updateTable('groups')
      .set({ ...changes, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id)
      .where('deletedAt', 'is', null),
  );
  return getGroup(db, organizationId, id);
}

/** Deletes a group softly, so that decisions can still name it; its rules bind nobody any more. 404 when there is none. */
export function deleteGroup(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    getGroup(db, organizationId, id);
    db.run(
      build
        .updateTable('groups')
        .set({ deletedAt: now, updatedAt: now })
        .where('organizationId', '=', organizationId)
        .where('id', '=', id),
    );
    db.run(build.deleteFrom('group_holders').where('organizationId', '=', organizationId).where('groupId', '=', id));
    raiseRuleRevision(db, organizationId);
  });
}

/** The present members in a group, in the order of their ids. */
export const listGroupMembers = (
  db: Database,
  organizationId: string,
  groupId: string,
): { readonly id: string; readonly email: string; readonly role: Role }[] =>
  db.all(
    build
      .selectFrom('group_holders')
      .innerJoin('members', (join) =>
        join
          .onRef('members.id', '=', 'group_holders.holderId')
          .onRef('members.organizationId', '=', 'group_holders.organizationId'),
      )
      .select(['members.id', 'members.email', 'members.role'])
      .where('group_holders.organizationId', '=', organizationId)
      .where('group_holders.groupId', '=', groupId)
      .where('members.removedAt', 'is', null)
      .orderBy('members.id'),
  );

/** The keys in a group that are not deleted, in the order of their ids. */
export const listGroupKeys = (
  db: Database,
  organizationId: string,
  groupId: string,
): { readonly id: string; readonly description: string }[] =>
  db.all(
    build
      .selectFrom('group_holders')
      .innerJoin('keys', (join) =>
        join
          .onRef('keys.id', '=', 'group_holders.holderId')
          .onRef('keys.organizationId', '=', 'group_holders.organizationId'),
      )
      .select(['keys.id', 'keys.description'])
      .where('group_holders.organizationId', '=', organizationId)
      .where('group_holders.groupId', '=', groupId)
      .where('keys.deletedAt', 'is', null)
      .orderBy('keys.id'),
  );

/** Counts the groups of a member or key. */
export const countGroupsOf = (db: Database, organizationId: string, holderId: string): number =>
  countRows(
    db,
    build.selectFrom('group_holders').where('organizationId', '=', organizationId).where('holderId', '=', holderId),
  );

/** Puts members and keys of the organization into a group, and takes others out; what is so already stays so. */
export function changeGroupHolders(
  db: Database,
  organizationId: string,
  groupId: string,
  { added, removed }: { readonly added: readonly string[]; readonly removed: readonly string[] },
): void {
  db.transaction(() => {
    for (const holderId of removed) {
      db.run(
        build
          .deleteFrom('group_holders')
          .where('organizationId', '=', organizationId)
          .where('groupId', '=', groupId)
          .where('holderId', '=', holderId),
      );
    }
    for (const holderId of added) {
      db.run(
        build
          .insertInto('group_holders')
          .values({ organizationId, groupId, holderId })
          .onConflict((conflict) => conflict.doNothing()),
      );
    }
    raiseRuleRevision(db, organizationId);
  });
}
