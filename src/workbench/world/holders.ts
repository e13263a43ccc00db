import type { PolicyRule } from '../../domain/iam-rule.ts';
import { type AddressSet, EVERY_ADDRESS, intersect, isEmpty } from './address-classes.ts';
import type { Caller } from './candidates.ts';
import type { Judges, OnProgress, SubjectTask } from './judges.ts';
import { ruleContents } from './rule-contents.ts';
import type { SubjectChange } from './subject-change.ts';
import type { SubjectAccess } from './subject-judge.ts';
import { keySubjects, memberSubjects, type World, type WorldSubject } from './world.ts';

/** Someone who reaches models: a key, or a member, who stands for any key of theirs, in any project, without rules of its own. */
export interface Holder extends Caller {
  readonly scope: 'key' | 'member';
  readonly id: string;
  /** The key's description or the member's e-mail. */
  readonly name: string;
  /** Outermost first. */
  readonly subjects: readonly WorldSubject[];
}

/** Every key and member, keys first, each in the order of the ids. */
export const holdersOf = (world: World): Holder[] => [
  ...[...world.keys.values()].map(
    (key): Holder => ({
      scope: 'key',
      id: key.id,
      name: key.description,
      organizationId: key.organizationId,
      projectId: key.projectId,
      subjects: keySubjects(world, key),
    }),
  ),
  ...[...world.members.values()].map(
    (member): Holder => ({
      scope: 'member',
      id: member.id,
      name: member.email,
      organizationId: member.organizationId,
      projectId: null,
      subjects: memberSubjects(world, member),
    }),
  ),
];

/** What a holder may call: every mapping set in `mappings`, from every address in `addresses`. */
export type Reach = SubjectAccess;

/** A call passes when every scope lets it pass. */
export function reachOf(scopes: readonly SubjectAccess[], mappingCount: number): Reach {
  const mappings = new Uint8Array(mappingCount).fill(1);
  let addresses: AddressSet = EVERY_ADDRESS;
  for (const scope of scopes) {
    for (let position = 0; position < mappingCount; position += 1)
      if (scope.mappings[position] !== 1) mappings[position] = 0;
    if (addresses !== EVERY_ADDRESS || scope.addresses !== EVERY_ADDRESS)
      addresses = intersect(addresses, scope.addresses);
  }
  return isEmpty(addresses) ? { mappings: new Uint8Array(mappingCount), addresses } : { mappings, addresses };
}

type Rules = readonly PolicyRule[];

/** Gathers the subjects to judge, so that each pair of contents is judged once, however many share it. */
export class SubjectTasks {
  readonly #tasks = new Map<string, SubjectTask>();
  #changes = new Map<string, SubjectChange>();

  add(before: Rules, after: Rules = before): void {
    const [was, is] = [ruleContents(before), ruleContents(after)];
    const key = pairKey(was.key, is.key);
    if (this.#tasks.has(key)) return;
    this.#tasks.set(key, { before: was.rules, after: was.key === is.key ? was.rules : is.rules });
  }

  async judge(judges: Judges, onProgress?: OnProgress): Promise<void> {
    const keys = [...this.#tasks.keys()];
    const changes = await judges.judge([...this.#tasks.values()], onProgress);
    this.#changes = new Map(
      keys.flatMap((key, index) => {
        const change = changes[index];
        return change === undefined ? [] : [[key, change]];
      }),
    );
  }

  /** What was judged of a pair that was added. */
  of(before: Rules, after: Rules = before): SubjectChange {
    const change = this.#changes.get(pairKey(ruleContents(before).key, ruleContents(after).key));
    if (change === undefined) throw new Error('The subject was not judged.');
    return change;
  }
}

const pairKey = (before: string, after: string): string => JSON.stringify([before, after]);
