import type { CatalogModel } from '../../catalog/catalog-file.ts';
import { modelsFor, servedWith } from '../../core/list-models.ts';
import type { PolicyRule } from '../../domain/iam-rule.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { type AddressSet, EVERY_ADDRESS, formatAddresses, intersect, isEmpty } from './address-classes.ts';
import { type Caller, credentialsIn, mappingsOf, ownModels } from './candidates.ts';
import type { Judges, OnProgress, SubjectTask } from './judges.ts';
import { createSubjectJudge, ruleContents, type SubjectAccess, type SubjectChange } from './subject-judge.ts';
import {
  keySubjects,
  memberSubjects,
  organizationSubject,
  type World,
  type WorldKey,
  type WorldSubject,
} from './world.ts';

/** Someone who reaches models: a key, or a member, who stands for any key of theirs, in any project, without rules of its own. */
export interface Holder extends Caller {
  readonly scope: 'key' | 'member';
  readonly id: string;
  /** The key's description or the member's e-mail. */
  readonly name: string;
  /** Outermost first. */
  readonly subjects: readonly WorldSubject[];
  /** A key that nobody holds and no rule and no group names: the line of its owner says the same. */
  readonly isCovered: boolean;
}

/** Every key and member, keys first, each in the order of the ids. */
export function holdersOf(world: World): Holder[] {
  const inGroup = new Set([...world.groups.values()].flatMap(({ holderIds }) => [...holderIds]));
  return [
    ...[...world.keys.values()].map(
      (key): Holder => ({
        scope: 'key',
        id: key.id,
        name: key.description,
        organizationId: key.organizationId,
        projectId: key.projectId,
        subjects: keySubjects(world, key),
        isCovered: key.isPlayground === true && key.rules.length === 0 && !inGroup.has(key.id),
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
        isCovered: false,
      }),
    ),
  ];
}

/** Access of a holder: every mapping set in `mappings`, from every address in `addresses`. */
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

  /** Returns the judgement on a pair that was added. */
  of(before: Rules, after: Rules = before): SubjectChange {
    const change = this.#changes.get(pairKey(ruleContents(before).key, ruleContents(after).key));
    if (change === undefined) throw new Error('The subject was not judged.');
    return change;
  }
}

const pairKey = (before: string, after: string): string => JSON.stringify([before, after]);

/** The models that a caller may use now, each with the mappings that it may use, and from which addresses. */
interface UsableModels {
  readonly models: readonly CatalogModel[];
  readonly addresses: readonly string[];
}

/** The caller whose usable models are wanted. */
interface UsableFor {
  readonly organizationId: string;
  readonly key: WorldKey | undefined;
  /** The one model that moderates. */
  readonly moderationModel: string;
  /** One entry for each mapping is wanted, so no aliases. */
  readonly isMapped: boolean;
}

/**
 * Finds the models that a key may use, by its own rules and those above them; without a key, those that the organization's
 * rules let through with any project's credentials.
 * @throws PolicyFailure
 */
export function usableModels(
  pdp: Pdp,
  world: World,
  { organizationId, key, moderationModel, isMapped }: UsableFor,
): UsableModels {
  const mappings = mappingsOf(world, organizationId);
  const judge = createSubjectJudge(pdp, mappings);
  const subjects = key === undefined ? organizationSubjects(world, organizationId) : keySubjects(world, key);
  const reach = reachOf(
    subjects.map(({ rules }) => judge.access(rules)),
    mappings.length,
  );
  const hasCredential = credentialsIn(world);
  const caller: Caller = key ?? { organizationId, projectId: null };
  const isServed = servedWith(moderationModel);
  const usable = new Set(
    mappings.filter(
      (mapping, position) => reach.mappings[position] === 1 && hasCredential(caller, mapping) && isServed(mapping),
    ),
  );
  return {
    models: modelsFor(world.catalog, ownModels(world, caller), (mapping) => usable.has(mapping), isMapped),
    addresses: formatAddresses(reach.addresses),
  };
}

function organizationSubjects({ organizations }: World, id: string): WorldSubject[] {
  const organization = organizations.get(id);
  if (organization === undefined) throw new Error(`There is no organization ${id}.`);
  return [organizationSubject(organization)];
}
