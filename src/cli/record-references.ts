import { type ListedKind, listKeys } from '../admin/keys/keys.ts';
import { listGroups } from '../admin/rules/groups.ts';
import { getRuleOwner, type RuleOwner } from '../admin/rules/rule-owner.ts';
import { listInvitations } from '../admin/tenants/invitations.ts';
import { listMembers } from '../admin/tenants/members.ts';
import { listProjects } from '../admin/tenants/projects.ts';
import { ApiError } from '../domain/errors.ts';
import { withName } from '../domain/id.ts';
import type { GroupSummary, InvitationRecord, KeyRecord, MemberRecord, ProjectRecord } from '../generated/types.ts';
import type { PageRequest } from '../store/db/records.ts';
import type { Workspace } from './workspace.ts';

/** Every item of a list that comes in pages. */
export function everyPage<T>(list: (page: PageRequest) => { items: readonly T[]; nextCursor: string | null }): T[] {
  const items: T[] = [];
  let cursor: string | null | undefined;
  while (cursor !== null) {
    const page = list({ limit: 200, cursor });
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
}

/** All regular keys, or all playground keys, newest first; of one project when its id is given. */
export const everyKey = ({ db, actor, now }: Workspace, projectId?: string, kind?: ListedKind): KeyRecord[] =>
  everyPage((page) => {
    const { keys, nextCursor } = listKeys(db, actor, { ...page, projectId, kind }, now);
    return { items: keys, nextCursor };
  });

/** The id of the key that a person means by an id, a masked token or a description. */
export function keyId(workspace: Workspace, reference: string): string {
  if (/^key_[0-9a-f]{32}$/.test(reference)) return reference;
  const meant = everyKey(workspace).filter(
    ({ maskedToken, description }) => maskedToken === reference || description === reference,
  );
  const [key] = meant;
  if (key === undefined) throw new Error(`There is no key with the id, masked token or description "${reference}".`);
  if (meant.length > 1) {
    const several = meant.map(({ id, maskedToken, createdByEmail }) =>
      withName(id, [maskedToken ?? [], createdByEmail ?? []].flat().join(', ')),
    );
    throw new Error(`"${reference}" matches several keys: ${several.join(', ')}.`);
  }
  return key.id;
}

/** All projects, newest first. */
export const everyProject = ({ db, actor }: Workspace): ProjectRecord[] =>
  everyPage((page) => {
    const { projects: items, nextCursor } = listProjects(db, actor, page);
    return { items, nextCursor };
  });

/** The names of the projects by their ids. */
export const projectNames = (workspace: Workspace): ReadonlyMap<string, string> =>
  new Map(everyProject(workspace).map(({ id, name }) => [id, name]));

/** All present members, newest first. */
export const everyMember = ({ db, actor }: Pick<Workspace, 'db' | 'actor'>): MemberRecord[] =>
  everyPage((page) => {
    const { members: items, nextCursor } = listMembers(db, actor, page);
    return { items, nextCursor };
  });

/** The id of the member that a membership id or e-mail names. */
export function memberId(workspace: Workspace, reference: string): string {
  const wanted = reference.toLowerCase();
  const member = everyMember(workspace).find(({ id, email }) => id === wanted || email === wanted);
  if (member === undefined) throw new Error(`There is no member with the id or e-mail "${reference}".`);
  return member.id;
}

/** Finds the owner of a rule by its id. @throws Error if there is no such rule */
export function ruleOwner({ db, actor }: Workspace, id: string): RuleOwner {
  try {
    return getRuleOwner(db, actor, id);
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
    throw new Error(`There is no rule "${id}".`, { cause: error });
  }
}

/** All groups, newest first. */
export const everyGroup = ({ db, actor }: Workspace): GroupSummary[] =>
  everyPage((page) => {
    const { groups: items, nextCursor } = listGroups(db, actor, page);
    return { items, nextCursor };
  });

/** The id of the group that an id or a name names. */
export function groupId(workspace: Workspace, reference: string): string {
  const groups = everyGroup(workspace);
  const group = groups.find(({ id }) => id === reference) ?? groups.find(({ name }) => name === reference);
  if (group === undefined) throw new Error(`There is no group with the id or name "${reference}".`);
  return group.id;
}

/** All invitations, newest first. */
export const everyInvitation = ({ db, actor, now }: Workspace): InvitationRecord[] =>
  everyPage((page) => {
    const { invitations: items, nextCursor } = listInvitations(db, actor, page, now);
    return { items, nextCursor };
  });

/** The id of the invitation that a person means by its id, or by masked token or e-mail where it is still open. */
export function invitationId(workspace: Workspace, reference: string): string {
  if (/^inv_[0-9a-f]{32}$/.test(reference)) return reference;
  const email = reference.toLowerCase();
  const invitation = everyInvitation(workspace).find(
    (each) => each.status === 'pending' && (each.email === email || each.maskedToken === reference),
  );
  if (invitation === undefined) {
    throw new Error(`There is no open invitation with the id, masked token or e-mail "${reference}".`);
  }
  return invitation.id;
}

/** The project that is named by id or name, or the only one. */
export function projectId(workspace: Workspace, reference: string | undefined): string {
  const projects = everyProject(workspace);
  const meant =
    reference === undefined ? projects : projects.filter(({ id, name }) => id === reference || name === reference);
  const [project] = meant;
  if (project !== undefined && meant.length === 1) return project.id;
  if (reference !== undefined && meant.length > 1) {
    throw new Error(`"${reference}" matches several projects: ${meant.map(({ id }) => id).join(', ')}.`);
  }
  const known = projects.map(({ id, name }) => `${id} (${name})`).join(', ');
  throw new Error(
    reference === undefined
      ? `Name the project with --project: ${known}.`
      : `There is no project "${reference}"; there are: ${known}.`,
  );
}

/** The organization's first owner: a key made here is theirs, unless another member is named. */
export function firstOwner(workspace: Pick<Workspace, 'db' | 'actor'>): string {
  const owner = everyMember(workspace).findLast(({ role }) => role === 'owner');
  if (owner === undefined) throw new Error('The organization has no owner: name a member with --owner.');
  return owner.id;
}
