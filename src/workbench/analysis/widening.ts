import type { AccessFlip, RuleWidening, WidenedCell } from '../../generated/types.ts';
import type { Judges, OnProgress } from '../world/judges.ts';
import type { World } from '../world/world.ts';
import { accessChanges } from './diff.ts';
import { type RuleReplacement, withRule } from './drafts.ts';

const MOST_CELLS = 100;
const MOST_ADDRESSES = 20;

/**
 * What a changed rule newly permits in an organization, exactly, over the judges' mappings: also where a credential is missing,
 * since that may come later, and no rule would stand against it. @throws PolicyFailure
 */
export async function ruleWidening(
  judges: Judges,
  world: World,
  replacement: RuleReplacement,
  onProgress?: OnProgress,
): Promise<RuleWidening> {
  const after = withRule(world, replacement);
  const { flips } = await accessChanges(judges, world, after, { withoutCredential: true }, onProgress);
  const gained = flips.filter(({ change }) => change === 'gained');
  return {
    count: gained.reduce((sum, { holders, mappings }) => sum + holders.length * mappings.length, 0),
    cells: cellsOf(gained).take(MOST_CELLS).toArray(),
  };
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
