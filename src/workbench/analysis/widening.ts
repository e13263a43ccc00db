import type { AccessFlip, RuleWidening, WidenedCell } from '../../generated/types.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import type { World } from '../world/world.ts';
import { accessChanges } from './diff.ts';
import { type RuleReplacement, withRule } from './drafts.ts';

const MOST_CELLS = 100;
const MOST_ADDRESSES = 20;

/** The members and keys that would be in a group. */
export interface Regrouping {
  readonly groupId: string;
  readonly holderIds: readonly string[];
}

/**
 * What a changed rule, or another composition of a group, newly permits in an organization, exactly, over the judges' mappings: also where a credential is missing,
 * since that may come later, and no rule would stand against it. @throws PolicyFailure
 */
export async function widening(
  judges: Judges,
  world: World,
  change: RuleReplacement | Regrouping,
  onProgress?: OnProgress,
): Promise<RuleWidening> {
  const after = 'ruleId' in change ? withRule(world, change) : withHolders(world, change);
  const { flips } = await accessChanges(judges, world, after, { withoutCredential: true }, onProgress);
  const gained = flips.filter(({ change }) => change === 'gained');
  return {
    count: gained.reduce((sum, { holders, mappings }) => sum + holders.length * mappings.length, 0),
    cells: cellsOf(gained).take(MOST_CELLS).toArray(),
  };
}

function withHolders(world: World, { groupId, holderIds }: Regrouping): World {
  const group = world.groups.get(groupId);
  if (group === undefined) return world;
  return { ...world, groups: new Map([...world.groups, [groupId, { ...group, holderIds: new Set(holderIds) }]]) };
}

function* cellsOf(flips: readonly AccessFlip[]): Generator<WidenedCell, undefined> {
  for (const { holders, mappings, credential, addresses } of flips) {
    const from = {
      addresses: addresses.slice(0, MOST_ADDRESSES),
      moreAddresses: Math.max(0, addresses.length - MOST_ADDRESSES),
    };
    for (const holder of holders) for (const mapping of mappings) yield { holder, mapping, credential, ...from };
  }
}
