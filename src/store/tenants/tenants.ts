import { sql } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { MinuteLimits } from '../../domain/limits.ts';
import type { Database } from '../db/database.ts';
import { countRows, insertSubject, mapPage, type Page, type PageRequest, readPage } from '../db/records.ts';
import { build, toFlag } from '../db/sql.ts';
import type { OrganizationsTable, Plan, ProjectsTable, Row, StoredSecret } from '../db/tables.ts';
import { deleteProviderKey, providerKeysOfProject } from '../providers/provider-key-records.ts';
import { deleteBudget } from './budget-records.ts';
import { addPlaygroundKeys, insertKey } from './key-records.ts';
import { insertMasterKey } from './master-key-records.ts';
import { insertMember } from './member-records.ts';

export type OrganizationRecord = Row<OrganizationsTable>;

export type ProjectRecord = Omit<Row<ProjectsTable>, 'cachingEnabled' | 'deletedAt'> & {
  readonly cachingEnabled: boolean;
};

const toProject = ({ deletedAt, ...row }: Row<ProjectsTable>): ProjectRecord => ({
  ...row,
  cachingEnabled: row.cachingEnabled === 1,
});

const presentProjects = (organizationId: string) =>
  build.selectFrom('projects').where('organizationId', '=', organizationId).where('deletedAt', 'is', null);

/** Stores an organization on the default plan and makes it a subject of rules. */
export function insertOrganization(
  db: Database,
  organization: { id: string; name: string },
  now: number,
): OrganizationRecord {
  return db.transaction(() => {
    db.run(build.insertInto('organizations').values({ ...organization, createdAt: now, updatedAt: now }));
    insertSubject(db, organization.id, organization.id, 'organization');
    return getOrganization(db, organization.id);
  });
}

/** The organization, or a 404. */
export function getOrganization(db: Database, organizationId: string): OrganizationRecord {
  const organization = db.get(build.selectFrom('organizations').selectAll().where('id', '=', organizationId));
  if (organization === undefined) throw notFound('There is no such organization.');
  return organization;
}

/** Every organization of this installation, oldest first: for the command line, which belongs to none. */
export const listOrganizations = (db: Database): OrganizationRecord[] =>
  db.all(build.selectFrom('organizations').selectAll().orderBy('id'));

/** Changes the organization; 404 when there is none. */
export function updateOrganization(
  db: Database,
  organizationId: string,
  changes: { name?: string; plan?: Plan; newKeyLimitsJson?: string | null } & Partial<MinuteLimits>,
  now: number,
): OrganizationRecord {
  db.run(
    build
      .updateTable('organizations')
      .set({ ...changes, updatedAt: now })
      .where('id', '=', organizationId),
  );
  return getOrganization(db, organizationId);
}

/** Counts the projects that are not deleted. */
export const countProjects = (db: Database, organizationId: string): number =>
  countRows(db, presentProjects(organizationId));

/** Stores a project with the default cache settings. */
export function insertProject(
  db: Database,
  project: { id: string; organizationId: string; name: string },
  now: number,
): ProjectRecord {
  db.run(build.insertInto('projects').values({ ...project, createdAt: now, updatedAt: now }));
  return getProject(db, project.organizationId, project.id);
}

/** The project, or undefined when it is missing, deleted, or of another organization. */
export function findProject(db: Database, organizationId: string, id: string): ProjectRecord | undefined {
  const row = db.get(presentProjects(organizationId).selectAll().where('id', '=', id));
  return row === undefined ? undefined : toProject(row);
}

/** The project, or a 404. */
export function getProject(db: Database, organizationId: string, id: string): ProjectRecord {
  const project = findProject(db, organizationId, id);
  if (project === undefined) throw notFound('There is no such project.');
  return project;
}

/** Projects that are not deleted, newest first. */
export const listProjects = (db: Database, organizationId: string, page: PageRequest): Page<ProjectRecord> =>
  mapPage(readPage(db, presentProjects(organizationId).selectAll(), page), toProject);

export type ProjectChanges = Partial<
  Pick<ProjectRecord, 'name' | 'cachingEnabled' | 'cacheDurationSeconds'> & MinuteLimits
>;

/** Changes a project; 404 when there is none. */
export function updateProject(
  db: Database,
  organizationId: string,
  id: string,
  changes: ProjectChanges,
  now: number,
): ProjectRecord {
  const cachingEnabled = changes.cachingEnabled === undefined ? undefined : toFlag(changes.cachingEnabled);
  db.run(
    build
      .updateTable('projects')
      .set({ ...changes, cachingEnabled, updatedAt: now })
      .where('organizationId', '=', organizationId)
      .where('id', '=', id),
  );
  return getProject(db, organizationId, id);
}

/**
 * Deletes a project softly, with its budget and all of its keys, so that none of them passes any more, and with the provider keys that are
 * for it alone, whose secrets are forgotten; 404 when there is none.
 */
export function deleteProject(db: Database, organizationId: string, id: string, now: number): void {
  db.transaction(() => {
    getProject(db, organizationId, id);
    deleteBudget(db, organizationId, id);
    const deletion = { deletedAt: now, updatedAt: now };
    db.run(
      build.updateTable('projects').set(deletion).where('organizationId', '=', organizationId).where('id', '=', id),
    );
    db.run(
      build
        .updateTable('keys')
        .set({ ...deletion, status: 'inactive' })
        .where('organizationId', '=', organizationId)
        .where('projectId', '=', id)
        .where('deletedAt', 'is', null),
    );
    for (const providerKeyId of providerKeysOfProject(db, organizationId, id)) {
      deleteProviderKey(db, organizationId, providerKeyId, now);
    }
  });
}

/** An organization and what it begins with; ids and secrets are made by the caller. */
export interface NewTenant {
  readonly organization: { readonly id: string; readonly name: string };
  readonly project: { readonly id: string; readonly name: string };
  readonly owner: { readonly id: string; readonly email: string; readonly passwordHash: string | null };
  readonly masterKey: StoredSecret & { readonly id: string; readonly description: string };
  readonly key?: StoredSecret & { readonly id: string; readonly description: string };
}

/** True until the first organization exists. */
export const isEmpty = (db: Database): boolean =>
  db.get(build.selectFrom('organizations').select('id').limit(1)) === undefined;

/** Creates an organization with its project, owner, master key, playground key and perhaps gateway key, all or nothing. */
export function initializeTenant(db: Database, tenant: NewTenant, now: number): void {
  const organizationId = tenant.organization.id;
  db.transaction(() => {
    insertOrganization(db, tenant.organization, now);
    insertProject(db, { ...tenant.project, organizationId }, now);
    insertMember(db, { ...tenant.owner, organizationId, name: null, role: 'owner' }, now);
    insertMasterKey(db, { ...tenant.masterKey, organizationId, memberId: tenant.owner.id }, now);
    if (tenant.key !== undefined) {
      insertKey(
        db,
        {
          ...tenant.key,
          organizationId,
          projectId: tenant.project.id,
          createdBy: tenant.owner.id,
          kind: 'regular',
          expiresAt: null,
          usageLimit: null,
          periodUsageLimit: null,
          periodUsageDurationValue: null,
          periodUsageDurationUnit: null,
        },
        now,
      );
    }
    addPlaygroundKeys(db, organizationId, { memberId: tenant.owner.id }, now);
  });
}

/** By the prefix of an id: the table, and its column that says what people call it. */
const NAMED = {
  mem: ['members', 'email'],
  proj: ['projects', 'name'],
  key: ['keys', 'description'],
  mkey: ['master_keys', 'description'],
  rule: ['rules', 'description'],
  grp: ['groups', 'name'],
} as const;

/**
 * Finds the names or descriptions by which people call members (e-mail), projects, groups, keys, master keys, rules and the
 * organization, by their ids; includes removed ones, except rules. Ids without a name, or of another organization, are missing.
 */
export function findNames(db: Database, organizationId: string, ids: Iterable<string>): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const byPrefix = Map.groupBy(new Set(ids), (id) => id.slice(0, id.indexOf('_')));
  if (byPrefix.has('org')) names.set(organizationId, getOrganization(db, organizationId).name);
  for (const [prefix, [table, column]] of Object.entries(NAMED)) {
    const wanted = byPrefix.get(prefix);
    if (wanted === undefined) continue;
    const rows = db.all(
      build
        .selectFrom(table)
        .select(['id', sql<string | null>`${sql.ref(column)}`.as('name')])
        .where('organizationId', '=', organizationId)
        .where('id', 'in', wanted),
    );
    for (const { id, name } of rows) if (name) names.set(id, name);
  }
  return names;
}
