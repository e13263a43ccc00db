import type { Catalog } from '../../catalog/catalog.ts';
import { policyTime, type RequestFacts, worstCases } from '../../core/call.ts';
import type { Demand } from '../../core/operations.ts';
import { chatDemand, imageDemand, MODERATION_DEMAND } from '../../core/worst-case.ts';
import { invalidRequest } from '../../domain/errors.ts';
import type { PolicyRule } from '../../domain/iam-rule.ts';
import type { Mapping } from '../../domain/model.ts';
import type { OrganizationProviders } from '../../domain/provider.ts';
import { storedRule } from '../../domain/rule-content.ts';
import type { FixtureFacts, ManagedBy, MemberRole, PolicyInput, PolicySubject, Scope } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { type ActiveRule, readPolicySubjects } from '../../store/rules/policy-subjects.ts';

/** An active rule. */
export type WorldRule = PolicyRule & {
  readonly description: string | null;
  /** Absent: no policy folder states it, or nobody knows. */
  readonly managedBy?: ManagedBy;
};

/** Someone whose rules decide calls. */
export interface WorldOrganization {
  readonly id: string;
  readonly name: string;
  /** 0 where it is not known: in a document. */
  readonly ruleRevision: number;
  readonly rules: readonly WorldRule[];
  /** Its own providers; null where they are not known: in a document. */
  readonly providers: OrganizationProviders | null;
}

export interface WorldGroup {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  /** The members and keys in it; some may be in no world. */
  readonly holderIds: ReadonlySet<string>;
  readonly rules: readonly WorldRule[];
}

export interface WorldMember {
  readonly id: string;
  readonly organizationId: string;
  readonly email: string;
  /** Undefined where it is not known: in a document. */
  readonly role?: MemberRole;
  readonly rules: readonly WorldRule[];
}

export interface WorldKey {
  readonly id: string;
  readonly organizationId: string;
  /** The member who owns the key; always in the same world. */
  readonly memberId: string;
  /** Null where it is not known: in a document. */
  readonly projectId: string | null;
  readonly description: string;
  readonly tags: readonly string[];
  /** A key without a secret, for its owner's session in the playground. */
  readonly isPlayground?: boolean;
  readonly rules: readonly WorldRule[];
}

/** Access of everyone, by the operator's configuration. */
export interface Installation {
  readonly catalog: Catalog;
  /** Ids of the providers that the operator has a credential for, or that need none. */
  readonly servedProviders: ReadonlySet<string>;
}

/** Everything that decides calls, as of one moment. Immutable; the maps are by id and in the order of the ids. */
export interface World extends Installation {
  readonly organizations: ReadonlyMap<string, WorldOrganization>;
  readonly groups: ReadonlyMap<string, WorldGroup>;
  readonly members: ReadonlyMap<string, WorldMember>;
  readonly keys: ReadonlyMap<string, WorldKey>;
}

/** The part of a world whose rules decide, without the objects of their decisions. */
export type RuleWorld = Pick<World, 'organizations' | 'groups' | 'members' | 'keys'>;

/** The maps of a world whose entries have rules, by scope. */
export const OWNERS = {
  organization: 'organizations',
  group: 'groups',
  member: 'members',
  key: 'keys',
} as const satisfies Readonly<Record<Scope, keyof World>>;

export type Owners = (typeof OWNERS)[Scope];

/** One of the subjects of a call. */
export interface WorldSubject extends PolicySubject {
  /** The name of the organization or group, the member's e-mail or the key's description. */
  readonly name: string;
  readonly rules: readonly WorldRule[];
}

/** The world as the database has it, of one organization or of all. @throws Error for a stored rule that is not valid */
export function readWorld(db: Database, installation: Installation, organizationId?: string): World {
  const { organizations, groups, members, keys, rules } = readPolicySubjects(db, organizationId);
  const bySubject = Map.groupBy(rules, ({ subjectId }) => subjectId);
  const withRules = <T extends { readonly id: string }>(subjects: readonly T[]) =>
    new Map(subjects.map((each) => [each.id, { ...each, rules: (bySubject.get(each.id) ?? []).map(worldRule) }]));
  return {
    ...installation,
    organizations: withRules(organizations),
    groups: withRules(groups),
    members: withRules(members),
    keys: withRules(keys),
  };
}

function worldRule(rule: ActiveRule): WorldRule {
  const { id, mode, description, managedBy: source, managedName: name } = rule;
  const managed = source === null || name === null ? {} : { managedBy: { source, name } };
  return { ...storedRule(rule), id, mode, description, ...managed };
}

/** The mappings of the catalogue that are not deactivated. By id. */
export const activeMappings = ({ catalog }: Pick<World, 'catalog'>): readonly Mapping[] =>
  catalog.mappings().filter(({ id }) => catalog.resolve(id)?.length === 1);

/** The world without all but these organizations. */
export function worldOf(world: World, organizationIds: ReadonlySet<string>): World {
  const keep = <T extends { readonly organizationId: string }>(all: ReadonlyMap<string, T>) =>
    new Map([...all].filter(([, each]) => organizationIds.has(each.organizationId)));
  return {
    ...world,
    organizations: new Map([...world.organizations].filter(([id]) => organizationIds.has(id))),
    groups: keep(world.groups),
    members: keep(world.members),
    keys: keep(world.keys),
  };
}

/** The rule of a group says which one it is of: a call may have several. */
export const groupNameOf = ({ scope, name }: Pick<WorldSubject, 'scope' | 'name'>): { readonly groupName?: string } =>
  scope === 'group' ? { groupName: name } : {};

export const organizationSubject = ({ id, name, rules }: WorldOrganization): WorldSubject => ({
  scope: 'organization',
  id,
  name,
  rules,
});

/** The groups that one of these is in, as a call meets them. */
export const groupsOf = ({ groups }: Pick<World, 'groups'>, ...holderIds: readonly string[]): WorldGroup[] =>
  [...groups.values()]
    .filter((group) => holderIds.some((id) => group.holderIds.has(id)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));

/**
 * Subjects whose rules a member's calls meet, outermost first: their access with a key that has no rules of its own.
 * @param keyId a key of theirs whose own groups count too
 */
export function memberSubjects(world: RuleWorld, member: WorldMember, keyId = member.id): WorldSubject[] {
  const organization = world.organizations.get(member.organizationId);
  if (organization === undefined) throw new Error(`The organization of the member ${member.id} is missing.`);
  return [
    organizationSubject(organization),
    ...groupsOf(world, member.id, keyId).map(
      ({ id, name, rules }): WorldSubject => ({ scope: 'group', id, name, rules }),
    ),
    { scope: 'member', id: member.id, name: member.email, rules: member.rules },
  ];
}

/** Subjects whose rules a key's calls meet, outermost first. */
export function keySubjects(world: RuleWorld, key: WorldKey): WorldSubject[] {
  const member = world.members.get(key.memberId);
  if (member === undefined) throw new Error(`The owner of the key ${key.id} is missing.`);
  return [
    ...memberSubjects(world, member, key.id),
    { scope: 'key', id: key.id, name: key.description, rules: key.rules },
  ];
}

/** Facts of a short chat on a Monday. */
export const PLAIN_FACTS: RequestFacts = {
  time: policyTime(Date.UTC(2026, 0, 5, 12)),
  door: 'rest',
  stream: false,
  text_bytes: 100,
  modalities: [],
  tool_names: [],
  worst_case_cost: {},
  meta: {},
};

/** Default for a model whose longest answer is not known, as `DEFAULT_MAX_OUTPUT_TOKENS` is unless it is set. */
const LONGEST_ANSWER = 16_384;

/** Worst-case cost of a short request at each candidate. */
export function plainWorstCases(
  action: PolicyInput['action'],
  candidates: readonly Mapping[],
  { text_bytes: textTokens }: Pick<RequestFacts, 'text_bytes'>,
): RequestFacts['worst_case_cost'] {
  const demands: Record<PolicyInput['action'], Demand> = {
    chat: chatDemand({ model: '', messages: [] }, LONGEST_ANSWER, 0),
    image: imageDemand({ model: '', prompt: '' }),
    moderation: MODERATION_DEMAND,
  };
  return worstCases(candidates, { ...demands[action], textTokens });
}

/** Facts as a fixture has them, the plain ones filled in. @throws ApiError 400 for a time that is none */
export function factsOf(facts: FixtureFacts = {}): RequestFacts {
  const time = facts.time === undefined ? undefined : Date.parse(facts.time);
  if (Number.isNaN(time)) throw invalidRequest('It must be a time such as 2026-01-31T12:00:00Z.', '/time');
  return {
    time: time === undefined ? PLAIN_FACTS.time : policyTime(time),
    door: facts.door ?? PLAIN_FACTS.door,
    stream: facts.stream ?? PLAIN_FACTS.stream,
    text_bytes: facts.textBytes ?? PLAIN_FACTS.text_bytes,
    modalities: facts.modalities ?? PLAIN_FACTS.modalities,
    tool_names: facts.toolNames ?? PLAIN_FACTS.tool_names,
    worst_case_cost: facts.worstCaseCost ?? PLAIN_FACTS.worst_case_cost,
    meta: facts.meta ?? PLAIN_FACTS.meta,
  };
}
