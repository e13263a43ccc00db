import { ApiError, invalidRequest } from '../../domain/errors.ts';
import type { GroupPatch } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { countGroupsOf } from '../../store/tenants/group-records.ts';
import type { Actor } from '../audit/actor.ts';
import { checkRulesChangeable, getRuleSubject, type RuleOwner } from './rule-owner.ts';

/** Members and keys in one group. */
const MAX_HOLDERS = 500;
/** That a member or a key is in: with both, a call has at most 43 subjects (schemas/policy/input.json). */
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
export function readMoves(db: Database, actor: Actor, patch: GroupPatch, there: ReadonlySet<string>): Moves {
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
