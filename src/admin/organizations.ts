import { formatTime } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import * as store from '../store/tenants.ts';
import type { Actor } from './actor.ts';

/** What an organization may be on. All that a plan decides today is whether IP rules may be written (`enterprise`). */
export const PLANS = ['free', 'pro', 'enterprise'] as const;
export type Plan = (typeof PLANS)[number];

/** An organization as admin JSON shows it. */
export interface OrganizationView {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly name: string;
  readonly plan: string;
}

const view = ({ id, createdAt, updatedAt, name, plan }: store.OrganizationRecord): OrganizationView => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  name,
  plan,
});

/** Every organization of this installation, oldest first: for the command line, which belongs to none. */
export const listOrganizations = (db: Database): OrganizationView[] => store.listOrganizations(db).map(view);

/**
 * Puts the actor's organization on a plan, from the next write of a rule on. Rules that it could no longer write stay in
 * force, and can be deleted (decisions.md, section 4). @param now epoch ms
 */
export const setPlan = (db: Database, { organizationId }: Actor, plan: Plan, now: number): OrganizationView =>
  view(store.updateOrganization(db, organizationId, { plan }, now));
