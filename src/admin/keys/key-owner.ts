import { invalidRequest } from '../../domain/errors.ts';
import type { Database } from '../../store/db/database.ts';
import { getMember } from '../../store/tenants/member-records.ts';
import { type Actor, checkMakesKeysFor } from '../audit/actor.ts';

/**
 * Who owns a new key: the member that is named, or the one who made the master key; the command line always names one.
 * 404 for no member of the organization, 403 where the actor may make no keys for the member.
 */
export function ownerOfNewKey(db: Database, actor: Actor, createdBy: string | undefined): string {
  if (createdBy === undefined) {
    if (actor.kind !== 'cli') return actor.memberId;
    throw invalidRequest('/createdBy is missing.', '/createdBy');
  }
  const owner = getMember(db, actor.organizationId, createdBy).id;
  checkMakesKeysFor(actor, owner);
  return owner;
}
