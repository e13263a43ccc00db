import type { CatalogModel } from '../../catalog/catalog-file.ts';
import { modelsFor, servedWith } from '../../core/list-models.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { formatAddresses } from './address-classes.ts';
import { type Caller, credentialsIn, mappingsOf, ownModels } from './candidates.ts';
import { reachOf } from './holders.ts';
import { createSubjectJudge } from './subject-judge.ts';
import { keySubjects, organizationSubject, type World, type WorldKey, type WorldSubject } from './world.ts';

/** The models that a caller may use now, each with the mappings that it may use, and from which addresses. */
export interface UsableModels {
  readonly models: readonly CatalogModel[];
  readonly addresses: readonly string[];
}

/** Who asks. */
interface UsableFor {
  readonly organizationId: string;
  readonly key: WorldKey | undefined;
  /** The one model that moderates. */
  readonly moderationModel: string;
  /** One entry for each mapping is wanted, so no aliases. */
  readonly isMapped: boolean;
}

/**
 * What a key may use, by its own rules and those above them; without a key, what the organization's rules let through with any
 * project's credentials. @throws PolicyFailure
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
