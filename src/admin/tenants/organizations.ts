import { checkShape } from '../../domain/check-shape.ts';
import { formatTime } from '../../domain/time.ts';
import type { OrganizationAnswer, OrganizationRecord, WantedKeyLimits } from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import * as store from '../../store/tenants/tenants.ts';
import { type Actor, checkIsOwner } from '../audit/actor.ts';
import { recordChange } from '../audit/audit-trail.ts';
import { parseSetting, settingOf } from '../keys/key-bounds.ts';
import { LIMIT_EXPLANATIONS, MINUTE_LIMIT_EXPLANATION } from '../keys/key-limits.ts';

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be a text of 1 to 256 characters, not all of them blank' },
  ...LIMIT_EXPLANATIONS,
  MINUTE_LIMIT_EXPLANATION,
];

/** Every organization of this installation, oldest first: for the command line, which belongs to none. */
export const listOrganizations = (db: Database): OrganizationRecord[] => store.listOrganizations(db).map(view);

/** The actor's organization, for every role. */
export const getOrganization = (db: Database, { organizationId }: Actor): OrganizationAnswer => ({
  organization: view(store.getOrganization(db, organizationId)),
});

/**
 * Changes the name, the plan or the limits of the actor's organization, for owners only (403). A plan holds from the next write of a rule
 * on: rules that it could no longer write stay in force, and can be deleted (src/admin/README.md, "plan").
 * @param body as `OrganizationPatch`, unchecked. @param now epoch ms
 */
export function changeOrganization(db: Database, actor: Actor, body: unknown, now: number): OrganizationAnswer {
  const patch = checkShape(validator('OrganizationPatch'), body, EXPLANATIONS);
  return db.transaction(() => {
    checkIsOwner(actor);
    const { organization: before } = getOrganization(db, actor);
    const { newKeyLimits, ...others } = patch;
    const changes =
      newKeyLimits === undefined ? others : { ...others, newKeyLimitsJson: settingText(newKeyLimits, now) };
    const organization = view(store.updateOrganization(db, actor.organizationId, changes, now));
    recordChange(db, actor, 'organization', 'update', { before, after: organization }, now);
    return { organization };
  });
}

const settingText = (wanted: WantedKeyLimits | null, now: number): string | null =>
  wanted === null ? null : JSON.stringify(settingOf(wanted, now));

const view = ({
  id,
  createdAt,
  updatedAt,
  name,
  plan,
  newKeyLimitsJson,
  requestsPerMinute,
  tokensPerMinute,
}: store.OrganizationRecord): OrganizationRecord => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  name,
  plan,
  newKeyLimits: parseSetting(newKeyLimitsJson),
  requestsPerMinute,
  tokensPerMinute,
});
