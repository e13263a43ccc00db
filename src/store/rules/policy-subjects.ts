import type { OrganizationProviders } from '../../domain/provider.ts';
import type { MemberRole } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { prepareTextParts } from '../db/text-parts.ts';
import { prepareOrganizationProviders } from '../providers/organization-providers.ts';
import { PLAYGROUND } from '../tenants/key-records.ts';
import type { RuleRecord } from './rules.ts';

/** An active rule with its owner. */
export type ActiveRule = Pick<
  RuleRecord,
  'id' | 'subjectId' | 'ruleType' | 'ruleValue' | 'mode' | 'description' | 'managedBy' | 'managedName'
>;

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
  readonly groups: readonly {
    readonly id: string;
    readonly organizationId: string;
    readonly name: string;
    /** The members and keys in it, those that are gone too. */
    readonly holderIds: ReadonlySet<string>;
  }[];
  readonly members: readonly {
    readonly id: string;
    readonly organizationId: string;
    readonly email: string;
    readonly role: MemberRole;
  }[];
  readonly keys: readonly {
    readonly id: string;
    readonly organizationId: string;
    readonly projectId: string;
    readonly memberId: string;
    /** The key's description; for a playground key, since all are described alike, its owner and project. */
    readonly description: string;
    readonly tags: readonly string[];
    /** Of a playground key there is no secret: only its owner's session calls with it. */
    readonly isPlayground: boolean;
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
    groups: groups(db, organizationId),
    members: members(db, organizationId),
    keys: keys(db, organizationId),
    rules: rules(db, organizationId),
  });
  return db.snapshot(read);
}

function organizations(db: Database, organizationId: string | undefined): PolicySubjects['organizations'] {
  const providersOf = prepareOrganizationProviders(db);
  const query = build.selectFrom('organizations').select(['id', 'name', 'ruleRevision']).orderBy('id');
  return db
    .all(organizationId === undefined ? query : query.where('id', '=', organizationId))
    .map((organization) => ({ ...organization, providers: providersOf(organization.id) }));
}

function groups(db: Database, organizationId: string | undefined): PolicySubjects['groups'] {
  const query = build
    .selectFrom('groups')
    .select(['id', 'organizationId', 'name'])
    .where('deletedAt', 'is', null)
    .orderBy('id');
  const holders = build.selectFrom('group_holders').select(['groupId', 'holderId']);
  const all = organizationId === undefined ? holders : holders.where('organizationId', '=', organizationId);
  const byGroup = Map.groupBy(db.all(all), ({ groupId }) => groupId);
  return db
    .all(organizationId === undefined ? query : query.where('organizationId', '=', organizationId))
    .map((group) => ({ ...group, holderIds: new Set(byGroup.get(group.id)?.map(({ holderId }) => holderId)) }));
}

function members(db: Database, organizationId: string | undefined): PolicySubjects['members'] {
  const query = build
    .selectFrom('members')
    .select(['id', 'organizationId', 'email', 'role'])
    .where('removedAt', 'is', null)
    .orderBy('id');
  return db.all(organizationId === undefined ? query : query.where('organizationId', '=', organizationId));
}

function keys(db: Database, organizationId: string | undefined): PolicySubjects['keys'] {
  const query = build
    .selectFrom('keys')
    .innerJoin('members', (join) =>
      join.onRef('members.id', '=', 'keys.createdBy').onRef('members.organizationId', '=', 'keys.organizationId'),
    )
    .innerJoin('projects', 'projects.id', 'keys.projectId')
    .select([
      'keys.id',
      'keys.organizationId',
      'keys.projectId',
      'keys.createdBy as memberId',
      'keys.description',
      'keys.kind',
      'keys.tagsJson',
      'members.email',
      'projects.name as projectName',
    ])
    .where('keys.deletedAt', 'is', null)
    .where('keys.kind', '!=', 'platform_secret')
    .where('members.removedAt', 'is', null)
    .orderBy('keys.id');
  return db
    .all(organizationId === undefined ? query : query.where('keys.organizationId', '=', organizationId))
    .map(({ kind, email, projectName, description, tagsJson, ...key }) => ({
      ...key,
      tags: JSON.parse(tagsJson),
      isPlayground: kind === 'playground',
      description: kind === 'playground' ? `${PLAYGROUND} of ${email} in ${projectName}` : description,
    }));
}

function rules(db: Database, organizationId: string | undefined): ActiveRule[] {
  const parts = prepareTextParts(db, 'rule_parts');
  const query = build
    .selectFrom('rules')
    .select(['id', 'subjectId', 'ruleType', 'ruleValueJson', 'mode', 'description', 'managedBy', 'managedName'])
    .where('status', '=', 'active')
    .orderBy('id');
  return db
    .all(organizationId === undefined ? query : query.where('organizationId', '=', organizationId))
    .map(({ ruleValueJson, ...rule }) => ({ ...rule, ruleValue: JSON.parse(parts.read(ruleValueJson)) }));
}

/** A number that grows with every change of keys, members, groups, rules and providers, of whichever organization. */
export function changeNumber({ connection }: Database): number {
  const number = connection.prepare<[], unknown>('SELECT number FROM changes').pluck().get();
  if (typeof number !== 'number') throw new Error('The database has no number of its changes.');
  return number;
}
