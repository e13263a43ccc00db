import { checkShape } from '../../domain/check-shape.ts';
import { invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type { Deletion, ProjectAnswer, ProjectList, ProjectRecord } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import { addPlaygroundKeys } from '../../store/tenants/key-records.ts';
import * as store from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';
import { MINUTE_LIMIT_EXPLANATION } from '../keys/key-limits.ts';
import { endGrantsFrom } from '../keys/oauth-grants.ts';
import { removeAliasesOf } from '../providers/aliases.ts';

/** Every member has a playground key in each. */
const MAX_PROJECTS = 100;

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  { at: /^\/cacheDurationSeconds$/, must: 'must be a whole number from 10 to 31536000' },
  MINUTE_LIMIT_EXPLANATION,
];

/**
 * Makes a project, with a playground key for every member. Shape and a project too many 400, developers 403.
 * @param body as `ProjectCreate`, unchecked. @param now epoch ms
 */
export function createProject(db: Database, actor: Actor, body: unknown, now: number): ProjectAnswer {
  const { name, ...settings } = checkShape(validator('ProjectCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    if (store.countProjects(db, organizationId) >= MAX_PROJECTS) {
      throw invalidRequest(`An organization has at most ${MAX_PROJECTS} projects.`);
    }
    const { id } = store.insertProject(db, { id: newId('proj'), organizationId, name }, now);
    const project = view(store.updateProject(db, organizationId, id, settings, now));
    addPlaygroundKeys(db, organizationId, { projectId: id }, now);
    recordChange(db, actor, 'project', 'create', { before: null, after: project }, now);
    return { project };
  });
}

/** A page of the organization's projects, newest first. Every role needs them, to make keys. */
export function listProjects(db: Database, { organizationId }: Actor, page: PageRequest): ProjectList {
  const { items, nextCursor } = store.listProjects(db, organizationId, page);
  return { projects: items.map(view), nextCursor };
}

/** One project, for every role; 404 when there is none. */
export const getProject = (db: Database, { organizationId }: Actor, id: string): ProjectAnswer => ({
  project: view(store.getProject(db, organizationId, id)),
});

/**
 * Changes a project's name, cache or limits a minute, from the next request on. Shape 400, developers 403.
 * @param body as `ProjectPatch`, unchecked. @param now epoch ms
 */
export function changeProject(db: Database, actor: Actor, id: string, body: unknown, now: number): ProjectAnswer {
  const patch = checkShape(validator('ProjectPatch'), body, EXPLANATIONS);
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const before = view(store.getProject(db, actor.organizationId, id));
    const project = view(store.updateProject(db, actor.organizationId, id, patch, now));
    recordChange(db, actor, 'project', 'update', { before, after: project }, now);
    return { project };
  });
}

/**
 * Deletes a project: its keys pass no more, the applications that act with them end, and the provider keys and aliases that are for it
 * alone are removed. The last project stays (400): there would be nothing to make keys in. Developers 403. @param now epoch ms
 */
export function deleteProject(db: Database, actor: Actor, id: string, now: number): Deletion {
  return db.transaction(() => {
    checkManagesOrganization(actor);
    const before = view(store.getProject(db, actor.organizationId, id));
    if (store.countProjects(db, actor.organizationId) === 1) {
      throw invalidRequest('The last project of an organization cannot be deleted.');
    }
    removeAliasesOf(db, actor, id, now);
    store.deleteProject(db, actor.organizationId, id, now);
    recordChange(db, actor, 'project', 'delete', { before, after: null }, now);
    endGrantsFrom(db, actor, { projectId: id }, now);
    return { id, deleted: true };
  });
}

const view = (project: store.ProjectRecord): ProjectRecord => ({
  id: project.id,
  createdAt: formatTime(project.createdAt),
  updatedAt: formatTime(project.updatedAt),
  name: project.name,
  cachingEnabled: project.cachingEnabled,
  cacheDurationSeconds: project.cacheDurationSeconds,
  requestsPerMinute: project.requestsPerMinute,
  tokensPerMinute: project.tokensPerMinute,
});
