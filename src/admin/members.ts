import { formatTime } from '../domain/time.ts';
import type { Database } from '../store/database.ts';
import * as store from '../store/members.ts';
import type { PageRequest } from '../store/page.ts';
import type { Role } from '../store/tables.ts';
import { type Actor, checkManagesOrganization } from './actor.ts';

/** A member as admin JSON shows it. */
export interface MemberView {
  readonly id: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly email: string;
  readonly name: string | null;
  readonly role: Role;
}

/** A page of the organization's present members, newest first; 403 for developers. */
export function listMembers(
  db: Database,
  actor: Actor,
  page: PageRequest,
): { members: MemberView[]; nextCursor: string | null } {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listMembers(db, actor.organizationId, page);
  const members = items.map((member) => ({
    id: member.id,
    createdAt: formatTime(member.createdAt),
    updatedAt: formatTime(member.updatedAt),
    email: member.email,
    name: member.name,
    role: member.role,
  }));
  return { members, nextCursor };
}
