import type { OrganizationProviders } from '../../domain/provider.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { prepareTextParts } from '../db/text-parts.ts';
import { prepareOrganizationProviders } from '../providers/organization-providers.ts';
import { PLAYGROUND } from '../tenants/playground-keys.ts';

/** An active rule with its owner. */
export interface ActiveRule {
  readonly id: string;
  readonly subjectId: string;
  readonly ruleType: string;
  readonly ruleValue: unknown;
  readonly mode: 'enforce' | 'report';
  readonly description: string | null;
}

/**
 * Everyone whose rules decide calls, with the active rules of all of them and the organizations' own providers. Each list is in
 * the order of the ids.
 */
export interface PolicySubjects {
  readonly organizations: readonly {
    readonly id: string;
    readonly name: string;
    readonly ruleRevision: number;
    readonly providers: OrganizationProviders;
  }[];
  readonly members: readonly { readonly id: string; readonly organizationId: string; readonly email: string }[];
  readonly keys: readonly {
    readonly id: string;
    readonly organizationId: string;
    readonly projectId: string;
    readonly memberId: string;
    /** Of a playground key, which all are described alike: whose it is and in which project. */
    readonly description: string;
  }[];
  readonly rules: readonly ActiveRule[];
}

/**
 * Reads every subject, rule and provider of one organization, or of all, as of one moment: present members, and keys that are
 * not deleted, whose owner is present and that may call the gateway. Reads many rows: not on the serving thread.
 */
export function readPolicySubjects(db: Database, organizationId?: string): PolicySubjects {
  const read = (): PolicySubjects => ({
    organizations: organizations(db, organizationId),
    members: members(db, organizationId),
    keys: keys(db, organizationId),
    rules: rules(db, organizationId),
  });
  return db.connection.transaction(read).deferred();
}

function organizations(db: Database, organizationId: string | undefined): PolicySubjects['organizations'] {
  const providersOf = prepareOrganizationProviders(db);
  const query = build.selectFrom('organizations').select(['id', 'name', 'rule_revision']).orderBy('id');
  return db
    .all(organizationId === undefined ? query : query.where('id', '=', organizationId))
    .map(({ id, name, rule_revision: ruleRevision }) => ({ id, name, ruleRevision, providers: providersOf(id) }));
}

function members(db: Database, organizationId: string | undefined): PolicySubjects['members'] {
  const query = build
    .selectFrom('members')
    .select(['id', 'organization_id as organizationId', 'email'])
    .where('removed_at', 'is', null)
    .orderBy('id');
  return db.all(organizationId === undefined ? query : query.where('organization_id', '=', organizationId));
}

function keys(db: Database, organizationId: string | undefined): PolicySubjects['keys'] {
  const query = build
    .selectFrom('keys')
    .innerJoin('members', (join) =>
      join.onRef('members.id', '=', 'keys.created_by').onRef('members.organization_id', '=', 'keys.organization_id'),
    )
    .innerJoin('projects', 'projects.id', 'keys.project_id')
    .select([
      'keys.id',
      'keys.organization_id as organizationId',
      'keys.project_id as projectId',
      'keys.created_by as memberId',
      'keys.description',
      'keys.kind',
      'members.email',
      'projects.name as projectName',
    ])
    .where('keys.deleted_at', 'is', null)
    .where('keys.kind', '!=', 'platform_secret')
    .where('members.removed_at', 'is', null)
    .orderBy('keys.id');
  return db
    .all(organizationId === undefined ? query : query.where('keys.organization_id', '=', organizationId))
    .map(({ kind, email, projectName, description, ...key }) => ({
      ...key,
      description: kind === 'playground' ? `${PLAYGROUND} of ${email} in ${projectName}` : description,
    }));
}

function rules(db: Database, organizationId: string | undefined): ActiveRule[] {
  const parts = prepareTextParts(db, 'rule_parts');
  const query = build
    .selectFrom('rules')
    .select(['id', 'subject_id', 'rule_type', 'rule_value_json', 'mode', 'description'])
    .where('status', '=', 'active')
    .orderBy('id');
  return db
    .all(organizationId === undefined ? query : query.where('organization_id', '=', organizationId))
    .map((row) => ({
      id: row.id,
      subjectId: row.subject_id,
      ruleType: row.rule_type,
      ruleValue: JSON.parse(parts.read(row.rule_value_json)),
      mode: row.mode,
      description: row.description,
    }));
}
