import type { Database } from '../../store/db/database.ts';
import { deleteOpenSignInLinks } from '../../store/sign-in/sign-in-records.ts';
import { getMember, type MemberRecord, updateMember } from '../../store/tenants/member-records.ts';
import { type Person, recordChange } from '../audit/audit-trail.ts';
import { viewMember } from '../tenants/member-view.ts';
import { endOtherSessions } from './sessions.ts';

/**
 * Gives the person a password, by its hash, and ends all their sessions and unused links: those who knew the old one are out. 404 when
 * they have left.
 * @param now epoch ms
 */
export function setPassword(db: Database, person: Person, passwordHash: string, now: number): MemberRecord {
  const { organizationId, memberId } = person;
  return db.transaction(() => {
    const before = viewMember(getMember(db, organizationId, memberId));
    const member = updateMember(db, organizationId, memberId, { passwordHash }, now);
    endOtherSessions(db, person, undefined, now);
    deleteOpenSignInLinks(db, organizationId, memberId);
    recordChange(db, person, 'member', 'set_password', { before, after: viewMember(member) }, now);
    return member;
  });
}
