import { formatTime } from '../../domain/time.ts';
import type { MemberRecord } from '../../generated/types.ts';
import type * as store from '../../store/tenants/member-records.ts';

/** A member as admin JSON shows them. */
export const viewMember = (member: store.MemberRecord): MemberRecord => ({
  id: member.id,
  createdAt: formatTime(member.createdAt),
  updatedAt: formatTime(member.updatedAt),
  email: member.email,
  name: member.name,
  role: member.role,
  requestsPerMinute: member.requestsPerMinute,
  tokensPerMinute: member.tokensPerMinute,
});
