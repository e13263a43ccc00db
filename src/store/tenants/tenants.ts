import type { Selectable, Updateable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import { deleteBudget } from '../budgets/budgets.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { build } from '../db/sql.ts';
import type { OrganizationsTable, Plan, ProjectsTable } from '../db/tables.ts';
import { deleteProviderKey, providerKeysOfProject } from '../providers/provider-keys.ts';
import { insertSubject } from './insert-subject.ts';

export interface OrganizationRecord {
  readonly id: string;
  readonly name: string;
  readonly plan: Plan;
  readonly ruleRevision: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface ProjectRecord {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly cachingEnabled: boolean;
  readonly cacheDurationSeconds: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

const toOrganization = (row: Selectable<OrganizationsTable>): OrganizationRecord => ({
  id: row.id,
  name: row.name,
  plan: row.plan,
  ruleRevision: row.rule_revision,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

const toProject = (row: Selectable<ProjectsTable>): ProjectRecord => ({
  id: row.id,
  organizationId: row.organization_id,
  name: row.name,
  cachingEnabled: row.caching_enabled === 1,
  cacheDurationSeconds: row.cache_duration_seconds,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});

/** Stores an organization on the default plan and makes it a subject of rules. */
export function insertOrganization(
  db: Database,
  organization: { id: string; name: string },
  now: number,
): OrganizationRecord {
  return db.transaction(() => {
    db.run(build.insertInto('organizations').values({ ...organization, created_at: now, updated_at: now }));
    insertSubject(db, organization.id, organization.id, 'organization');
    return getOrganization(db, organization.id);
  });
}

/** The organization, or a 404. */
export function getOrganization(db: Database, organizationId: string): OrganizationRecord {
  const row = db.get(build.selectFrom('organizations').selectAll().where('id', '=', organizationId));
  if (row === undefined) throw notFound('There is no such organization.');
  return toOrganization(row);
}

/** Every organization of this installation, oldest first: for the command line, which belongs to none. */
export const listOrganizations = (db: Database): OrganizationRecord[] =>
  db.all(build.selectFrom('organizations').selectAll().orderBy('id')).map(toOrganization);

/** Changes name or plan of the organization; 404 when there is none. */
export function updateOrganization(
  db: Database,
  organizationId: string,
  changes: { name?: string; plan?: Plan },
  now: number,
): OrganizationRecord {
  db.run(
    build
      .updateTable('organizations')
      .set({ ...changes, updated_at: now })
      .where('id', '=', organizationId),
  );
  return getOrganization(db, organizationId);
}

/** How many projects are not deleted. */
export const countProjects = (db: Database, organizationId: string): number =>
  db.get(
    build
      .selectFrom('projects')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('organization_id', '=', organizationId)
      .where('deleted_at', 'is', null),
  )?.count ?? 0;

/** Stores a project with the default cache settings. */
export function insertProject(
  db: Database,
  project: { id: string; organizationId: string; name: string },
  now: number,
): ProjectRecord {
  const { id, organizationId, name } = project;
  db.run(
    build
      .insertInto('projects')
      .values({ id, organization_id: organizationId, name, created_at: now, updated_at: now }),
  );
  return getProject(db, organizationId, id);
}

/** The project, or undefined when it is missing, deleted, or of another organization. */
export function findProject(db: Database, organizationId: string, id: string): ProjectRecord | undefined {
  const row = db.get(
    build
      .selectFrom('projects')
      .selectAll()
      .where('organization_id', '=', organizationId)
      .where('id', '=', id)
      .where('deleted_at', 'is', null),
  );
  return row === undefined ? undefined : toProject(row);
}

/** The project, or a 404. */
export function getProject(db: Database, organizationId: string, id: string): ProjectRecord {
  const project = findProject(db, organizationId, id);
  if (project === undefined) throw notFound('There is no such project.');
  return project;
}

/** Projects that are not deleted, newest first. */
export function listProjects(db: Database, organizationId: string, page: PageRequest): Page<ProjectRecord> {
  let query = build
    .selectFrom('projects')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toProject), page.limit);
}

export interface ProjectChanges {
  readonly name?: string;
  readonly cachingEnabled?: boolean;
  readonly cacheDurationSeconds?: number;
}

/** Changes a project; 404 when there is none. */
export function updateProject(
  db: Database,
  organizationId: string,
  id: string,
  changes: ProjectChanges,
  now: number,
): ProjectRecord {
  const set: Updateable<ProjectsTable> = { updated_at: now };
  if (changes.name !== undefined) set.name = changes.name;
  if (changes.cachingEnabled !== undefined) set.caching_enabled = changes.cachingEnabled ? 1 : 0;
  if (changes.cacheDurationSeconds !== undefined) set.cache_duration_seconds = changes.cacheDurationSeconds;
  db.run(build.updateTable('projects').set(set).where('organization_id', '=', organizationId).where('id', '=', id));
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
    const deletion = { deleted_at: now, updated_at: now };
    db.run(
      build.updateTable('projects').set(deletion).where('organization_id', '=', organizationId).where('id', '=', id),
    );
    db.run(
      build
        .updateTable('keys')
        .set({ ...deletion, status: 'inactive' })
        .where('organization_id', '=', organizationId)
        .where('project_id', '=', id)
        .where('deleted_at', 'is', null),
    );
    for (const providerKeyId of providerKeysOfProject(db, organizationId, id)) {
      deleteProviderKey(db, organizationId, providerKeyId, now);
    }
  });
}
