import type { Actor } from '../../../admin/audit/actor.ts';
import type { Session } from '../../pages/session.ts';

/** The signed-in member as who acts. */
export const personOf = ({ member }: Session): Actor & { readonly kind: 'person' } => ({
  kind: 'person',
  organizationId: member.organizationId,
  memberId: member.id,
  role: member.role,
});
