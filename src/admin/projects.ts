import { formatTime } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import type { PageRequest } from '../store/page.ts';
import * as store from '../store/tenants.ts';
import type { Actor } from './actor.ts';

/** A project as admin JSON shows it. */
export interface ProjectView {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly name: string;
  readonly cachingEnabled: boolean;
  readonly cacheDurationSeconds: number;
}

/** A page of the organization's projects, newest first. Every role needs them, to make keys. */
export function listProjects(
  db: Database,
  { organizationId }: Actor,
  page: PageRequest,
): { projects: ProjectView[]; nextCursor: string | null } {
  const { items, nextCursor } = store.listProjects(db, organizationId, page);
  const projects = items.map((project) => ({
    id: project.id,
    createdAt: formatTime(project.createdAt),
    updatedAt: formatTime(project.updatedAt),
    name: project.name,
    cachingEnabled: project.cachingEnabled,
    cacheDurationSeconds: project.cacheDurationSeconds,
  }));
  return { projects, nextCursor };
}
