import { checkShape } from '../../domain/check-shape.ts';
import { ApiError, invalidField, invalidRequest } from '../../domain/errors.ts';
import { newId } from '../../domain/id.ts';
import { formatTime } from '../../domain/time.ts';
import type {
  GroupAnswer,
  GroupChangeAnswer,
  GroupDeletion,
  GroupList,
  GroupPatch,
  GroupRecord,
  GroupSummary,
} from '../../generated/types.ts';
import { validator } from '../../lib/schemas.ts';
import type { Database } from '../../store/db/database.ts';
import type { PageRequest } from '../../store/db/records.ts';
import { listRules } from '../../store/rules/rules.ts';
import * as store from '../../store/tenants/group-records.ts';
import { countGroupsOf } from '../../store/tenants/group-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, checkManagesOrganization, recordChange } from '../audit/audit-trail.ts';
import { type ChangePlan, type JudgedChange, judgedWidening } from './judged-change.ts';
import { checkRulesChangeable, getRuleSubject, type RuleOwner } from './rule-owner.ts';

const MAX_GROUPS = 200;

const EXPLANATIONS = [
  { at: /^\/name$/, must: 'must be 1 to 64 letters, digits and . _ -, and begin with a letter or digit' },
];

/** A change of who is in a group. */
export interface GroupPlan extends ChangePlan {
  readonly groupId: string;
  /** The members and keys that would be in it. */
  readonly holderIds: readonly string[];
}

/** Makes a group without anyone in it. Shape, a name that is taken and a group too many 400, developers 403. @param now epoch ms */
export function createGroup(db: Database, actor: Actor, body: unknown, now: number): GroupAnswer {
  const { name, description = null } = checkShape(validator('GroupCreate'), body, EXPLANATIONS);
  const { organizationId } = actor;
  return db.transaction(() => {
    checkManagesOrganization(actor);
    checkNameIsFree(db, organizationId, name);
    if (store.countGroups(db, organizationId) >= MAX_GROUPS) {
      throw invalidRequest(`An organization has at most ${MAX_GROUPS} groups.`);
    }
    const row = store.insertGroup(db, { id: newId('grp'), organizationId, name, description }, now);
    recordChange(db, actor, 'group', 'create', { before: null, after: summary(row) }, now);
    return { group: view(db, row) };
  });
}

/** A page of the organization's groups, newest first; 403 for developers. */
export function listGroups(db: Database, actor: Actor, page: PageRequest): GroupList {
  checkManagesOrganization(actor);
  const { items, nextCursor } = store.listGroups(db, actor.organizationId, page);
  return { groups: items.map(summary), nextCursor };
}

/** One group with all who are in it; 404 when there is none, 403 for developers. */
export function getGroup(db: Database, actor: Actor, id: string): GroupAnswer {
  checkManagesOrganization(actor);
  return { group: view(db, store.getGroup(db, actor.organizationId, id)) };
}

/** The first steps of a change, which write nothing. @throws ApiError as `changeGroup` */
export function readGroupPlan(db: Database, actor: Actor, id: string, body: unknown): GroupPlan {
  return prepareChange(db, actor, id, body).plan;
}

/** Reads a deletion as above: nobody is in a deleted group. */
export function readGroupDeletion(db: Database, actor: Actor, id: string, failOnNewAccess: boolean): GroupPlan {
  return prepareDeletion(db, actor, id, failOnNewAccess).plan;
}

/**
 * Changes the name or description of a group, or who is in it, from the next call on. Shape 400, then group, members and keys (404, 403),
 * bounds (400), then new access (409).
 * @param body as `GroupPatch`, unchecked. @param now epoch ms @param judged what is known of the change; absent: nothing
 * @throws StaleRules when it was judged for other rules
 */
export function changeGroup(
  db: Database,
  actor: Actor,
  id: string,
  body: unknown,
  now: number,
  judged?: JudgedChange,
): GroupChangeAnswer {
  const { organizationId } = actor;
  return db.transaction(() => {
    const { labels, present, added, removed, plan } = prepareChange(db, actor, id, body);
    const widens = judgedWidening(judged, plan);
    const before = summary(present);
    const row = Object.keys(labels).length === 0 ? present : store.updateGroup(db, organizationId, id, labels, now);
    if (added.length + removed.length > 0) {
      store.changeGroupHolders(db, organizationId, id, { added: idsOf(added), removed: idsOf(removed) });
    }
    const [left, joined] = [removed.length > 0 ? { removed } : {}, added.length > 0 ? { added } : {}];
    const change = { before: { ...before, ...left }, after: { ...summary(row), ...joined } };
    recordChange(db, actor, 'group', 'update', change, now);
    return { group: view(db, row), widens };
  });
}

/**
 * Deletes a group: its rules bind nobody any more. No such group 404, developers, and admins where an owner is in it, 403, then new
 * access (409). @param now epoch ms @param judged what is known of the change; absent: nothing
 * @throws StaleRules when it was judged for other rules
 */
export function deleteGroup(
  db: Database,
  actor: Actor,
  id: string,
  failOnNewAccess: boolean,
  now: number,
  judged?: JudgedChange,
): GroupDeletion {
  const { organizationId } = actor;
  return db.transaction(() => {
    const { present, plan } = prepareDeletion(db, actor, id, failOnNewAccess);
    const before = view(db, present);
    const widens = judgedWidening(judged, plan);
    store.deleteGroup(db, organizationId, id, now);
    recordChange(db, actor, 'group', 'delete', { before, after: null }, now);
    return { id, deleted: true, widens };
  });
}

function planOf(
  db: Database,
  actor: Actor,
  groupId: string,
  holderIds: readonly string[],
  failOnNewAccess: boolean,
): GroupPlan {
  const { organizationId } = actor;
  const isEnforcing = listRules(db, organizationId, groupId).some(
    ({ status, mode }) => status === 'active' && mode === 'enforce',
  );
  const leaves = holderIdsOf(db, actor, groupId).some((id) => !holderIds.includes(id));
  const { ruleRevision } = getOrganization(db, organizationId);
  // Joining a group gives nobody more than they had.
  return { groupId, holderIds, ruleRevision, matters: isEnforcing && leaves, failOnNewAccess };
}

const holderIdsOf = (db: Database, { organizationId }: Actor, groupId: string): string[] => [
  ...idsOf(store.listGroupMembers(db, organizationId, groupId)),
  ...idsOf(store.listGroupKeys(db, organizationId, groupId)),
];

const idsOf = (all: readonly { readonly id: string }[]): string[] => all.map(({ id }) => id);

function prepareChange(db: Database, actor: Actor, id: string, body: unknown) {
  const patch = checkShape(validator('GroupPatch'), body, EXPLANATIONS);
  const { failOnNewAccess = false, ...fields } = patch;
  if (Object.keys(fields).length === 0) {
    throw invalidField('', 'must hold at least one field of the group', { kind: 'empty' });
  }
  const { organizationId } = actor;
  checkManagesOrganization(actor);
  const present = store.getGroup(db, organizationId, id);
  if (patch.name !== undefined && patch.name !== present.name) checkNameIsFree(db, organizationId, patch.name);
  const there = holderIdsOf(db, actor, id);
  const { added, removed } = readMoves(db, actor, patch, new Set(there));
  const stay = there.filter((holder) => !removed.some((each) => each.id === holder));
  const plan = planOf(db, actor, id, [...stay, ...idsOf(added)], failOnNewAccess);
  const { name, description } = patch;
  const labels = { ...(name === undefined ? {} : { name }), ...(description === undefined ? {} : { description }) };
  return { labels, present, added, removed, plan };
}

function checkNameIsFree(db: Database, organizationId: string, name: string): void {
  if (store.findGroupByName(db, organizationId, name) === undefined) return;
  throw invalidRequest(`There is a group "${name}" already.`, '/name');
}

/** Admins take no owner out of a group. */
function prepareDeletion(db: Database, actor: Actor, id: string, failOnNewAccess: boolean) {
  checkManagesOrganization(actor);
  const present = store.getGroup(db, actor.organizationId, id);
  for (const member of store.listGroupMembers(db, actor.organizationId, id)) {
    checkRulesChangeable(actor, { scope: 'member', id: member.id, name: member.email, role: member.role });
  }
  return { present, plan: planOf(db, actor, id, [], failOnNewAccess) };
}

const summary = ({ id, createdAt, updatedAt, name, description }: store.GroupRow): GroupSummary => ({
  id,
  createdAt: formatTime(createdAt),
  updatedAt: formatTime(updatedAt),
  name,
  description,
});

const view = (db: Database, row: store.GroupRow): GroupRecord => ({
  ...summary(row),
  members: store.listGroupMembers(db, row.organizationId, row.id).map(({ id, email }) => ({ id, email })),
  keys: store.listGroupKeys(db, row.organizationId, row.id).map(({ id, description }) => ({ id, description })),
});

/** Members and keys in one group. */
const MAX_HOLDERS = 500;
/** Most groups of a member, and of a key: with both, a call has at most 43 subjects (schemas/policy/input.json). */
const MAX_GROUPS_OF_HOLDER = 20;

/** A member or a key that joins or leaves a group, as the audit log shows it. */
interface Moved {
  readonly id: string;
  readonly name: string;
}

interface Moves {
  readonly added: readonly Moved[];
  readonly removed: readonly Moved[];
}

/**
 * Those who join or leave a group by a change. No such member or key 404, one whose rules the actor may not change 403; someone who
 * would do both, and too many, 400. @param there ids of those who are in the group
 */
function readMoves(db: Database, actor: Actor, patch: GroupPatch, there: ReadonlySet<string>): Moves {
  const [joining, leaving] = [namedIn(db, actor, patch, 'add'), namedIn(db, actor, patch, 'remove')];
  const both = joining.find(({ id }) => leaving.some((each) => each.id === id));
  if (both !== undefined) throw invalidRequest(`${both.name || both.id} cannot be added and removed at once.`);
  const added = joining.filter(({ id }) => !there.has(id));
  const removed = leaving.filter(({ id }) => there.has(id));
  checkBounds(db, actor, there.size + added.length - removed.length, added);
  return { added, removed };
}

function namedIn(db: Database, actor: Actor, patch: GroupPatch, how: 'add' | 'remove'): Moved[] {
  const meant = (field: keyof GroupPatch, references: readonly string[] = [], toOwner: (text: string) => RuleOwner) =>
    references.map((text, index) => movable(db, actor, toOwner(text), `/${field}/${index}`));
  const all = [
    ...meant(`${how}Members`, patch[`${how}Members`], (member) => ({ kind: 'member', member })),
    ...meant(`${how}Keys`, patch[`${how}Keys`], (key) => ({ kind: 'key', key })),
  ];
  // A member may be named twice: by id and by e-mail.
  return [...new Map(all.map((each) => [each.id, each])).values()];
}

/** An actor may move those whose rules they may change. */
function movable(db: Database, actor: Actor, owner: RuleOwner, pointer: string): Moved {
  try {
    const subject = getRuleSubject(db, actor, owner);
    checkRulesChangeable(actor, subject);
    return { id: subject.id, name: subject.name };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new ApiError(error.status, error.code, `${pointer}: ${error.message}`, { param: pointer });
  }
}

function checkBounds(db: Database, { organizationId }: Actor, count: number, added: readonly Moved[]): void {
  if (count > MAX_HOLDERS) {
    throw invalidRequest(`A group has at most ${MAX_HOLDERS} members and keys; this would make ${count}.`);
  }
  const full = added.find((each) => countGroupsOf(db, organizationId, each.id) >= MAX_GROUPS_OF_HOLDER);
  if (full === undefined) return;
  throw invalidRequest(`${full.name || full.id} is in ${MAX_GROUPS_OF_HOLDER} groups already, which is the most.`);
}
