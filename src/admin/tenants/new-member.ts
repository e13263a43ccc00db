import type { MemberRecord } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { addPlaygroundKeys } from '../../store/tenants/key-records.ts';
import * as store from '../../store/tenants/member-records.ts';
import { viewMember } from './member-view.ts';

/** Stores a member without a password, with a playground key in every project. For a transaction of the caller's. @param now epoch ms */
export function newMember(db: Database, wanted: Omit<store.NewMember, 'passwordHash'>, now: number): MemberRecord {
  const member = store.insertMember(db, { ...wanted, passwordHash: null }, now);
  addPlaygroundKeys(db, wanted.organizationId, { memberId: member.id }, now);
  return viewMember(member);
}
