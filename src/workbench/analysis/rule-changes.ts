import { contentOf } from '../world/rule-contents.ts';
import { OWNERS, type World, type WorldRule } from '../world/world.ts';

/** What of the rules themselves differs between two worlds, whether access does or not. */
export interface RuleChanges {
  /** Rules that were added, removed or changed. */
  readonly count: number;
  /** The second world if its new and changed rules in mode `report` were enforced; undefined where there are none. */
  readonly enforced: World | undefined;
}

type Ruled = { readonly rules: readonly WorldRule[] };

export function ruleChanges(before: World, after: World): RuleChanges {
  const [was, is] = [textsOf(before), textsOf(after)];
  const ids = new Set([...was.keys(), ...is.keys()]);
  const changed = new Set(ids.values().filter((id) => was.get(id) !== is.get(id)));
  let reported = 0;
  const enforce = <T extends Ruled>(owners: ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
    new Map(
      owners.entries().map(([id, owner]) => {
        const isMeant = (rule: WorldRule): boolean => rule.mode === 'report' && changed.has(keyOf(id, rule));
        if (!owner.rules.some(isMeant)) return [id, owner];
        reported += 1;
        const rules = owner.rules.map((rule): WorldRule => (isMeant(rule) ? { ...rule, mode: 'enforce' } : rule));
        return [id, { ...owner, rules }];
      }),
    );
  const enforced: World = {
    ...after,
    organizations: enforce(after.organizations),
    groups: enforce(after.groups),
    members: enforce(after.members),
    keys: enforce(after.keys),
  };
  return { count: changed.size, enforced: reported === 0 ? undefined : enforced };
}

const keyOf = (ownerId: string, { id }: WorldRule): string => JSON.stringify([ownerId, id]);

/** What each rule says, by its owner and id. */
const textsOf = (world: World): Map<string, string> =>
  new Map(
    Object.values(OWNERS).flatMap((owners) =>
      [...world[owners].entries()].flatMap(([ownerId, { rules }]) =>
        rules.map((rule): [string, string] => [keyOf(ownerId, rule), `${rule.mode} ${contentOf(rule)}`]),
      ),
    ),
  );
