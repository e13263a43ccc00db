import { isDeepStrictEqual } from 'node:util';
import type { OrganizationProviders } from '../../domain/provider.ts';
import type { RuleWidening } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { prepareOrganizationProviders } from '../../store/providers/organization-providers.ts';
import { changeNumber } from '../../store/rules/policy-subjects.ts';
import { type ComparedMappings, compareMappings, credentialsIn } from '../world/candidates.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import type { World } from '../world/world.ts';
import { accessChanges } from './diff.ts';
import { wideningOf } from './drafts.ts';

/** An organization's own providers before and after a change that was made and undone. */
export interface Rehearsal {
  readonly before: OrganizationProviders;
  readonly after: OrganizationProviders;
  /** Another one after every change of what decides calls. */
  readonly changeNumber: number;
}

/**
 * Makes a change and undoes it, in one transaction: what it does to the models, their tags and credentials can so be judged before it
 * is made for good. Only these are read, since the serving thread reads them; who has which rules stays.
 * @param change must do the same when it is made. @throws what it throws
 */
export function rehearse(db: Database, organizationId: string, change: () => unknown): Rehearsal {
  const providersNow = prepareOrganizationProviders(db);
  return db.transaction(() => {
    const there = { before: providersNow(organizationId), changeNumber: changeNumber(db) };
    db.connection.exec('SAVEPOINT rehearsal');
    try {
      change();
      return { ...there, after: providersNow(organizationId) };
    } finally {
      db.connection.exec('ROLLBACK TO rehearsal; RELEASE rehearsal');
    }
  });
}

/** Whether a change can do anything to access at all. */
export const changesAnything = ({ before, after }: Rehearsal): boolean => !isDeepStrictEqual(before, after);

/** Two worlds of one organization, with the mappings by which both are judged. */
export interface ComparedWorlds {
  readonly before: World;
  readonly after: World;
  readonly mappings: ComparedMappings;
}

/** The worlds of a rehearsal. @param world of the organization, which nothing has changed since */
export function comparedWorlds(world: World, { before, after }: Pick<Rehearsal, 'before' | 'after'>): ComparedWorlds {
  const having = (providers: OrganizationProviders): World => ({
    ...world,
    organizations: new Map([...world.organizations].map(([id, each]) => [id, { ...each, providers }])),
  });
  return compareWorlds(having(before), having(after));
}

/** Where the same holders have the same rules, only what else differs is judged. @param before of one organization, as `after` */
function compareWorlds(before: World, after: World): ComparedWorlds {
  const [organizationId = ''] = after.organizations.keys();
  const all = compareMappings(before, after, organizationId);
  return { before, after, mappings: haveSameRules(before, after) ? onlyChanged(before, after, all) : all };
}

const haveSameRules = (before: World, after: World): boolean => isDeepStrictEqual(rulesOf(before), rulesOf(after));

const rulesOf = ({ organizations, groups, members, keys }: World) => ({
  ...{ groups, members, keys },
  organizations: [...organizations.values()].map(({ id, rules }) => ({ id, rules })),
});

/** Without the mappings that both worlds have as they are, and that everyone can call in both or in neither. */
function onlyChanged(before: World, after: World, { judged, named }: ComparedMappings): ComparedMappings {
  const [had, hasNow] = [credentialsIn(before), credentialsIn(after)];
  const [organizationId = ''] = after.organizations.keys();
  const projects = new Set([null, ...[...after.keys.values()].map(({ projectId }) => projectId)]);
  const callers = [...projects].map((projectId) => ({ organizationId, projectId }));
  const changed = named.filter(
    ({ mapping, was, is }) => was !== is || callers.some((caller) => had(caller, mapping) !== hasNow(caller, mapping)),
  );
  const places = [...new Set(changed.flatMap(({ was, is }) => [was, is]))].filter((place) => place !== undefined);
  const at = new Map(places.map((place, index) => [place, index]));
  const moved = (place: number | undefined) => (place === undefined ? undefined : at.get(place));
  return {
    judged: places.flatMap((place) => judged[place] ?? []),
    named: changed.map(({ mapping, was, is }) => ({ mapping, was: moved(was), is: moved(is) })),
  };
}

/** The access that a rehearsed change adds, exactly. @param judges of the compared mappings. @throws PolicyFailure */
export async function rehearsedWidening(
  judges: Judges,
  { before, after, mappings }: ComparedWorlds,
  onProgress?: OnProgress,
): Promise<RuleWidening> {
  return wideningOf(await accessChanges(judges, before, after, { withoutCredential: true }, onProgress, mappings));
}
