import type { MemberRecord } from '../../store/tenants/members.ts';

/** Who is signed in. */
export interface Session {
  readonly id: string;
  /** With their current role. */
  readonly member: MemberRecord;
  readonly organizationName: string;
  /** For `x-csrf-token`, and the field `csrf` of forms (`csrfField`). */
  readonly csrfToken: string;
}
