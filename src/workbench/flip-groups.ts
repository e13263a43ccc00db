import type { AccessDiff, AccessFlip, AccessFlipRule, AccessHolder } from '../generated/types.ts';
import { type AddressSet, formatAddresses } from './address-classes.ts';
import type { Judges } from './judges.ts';
import type { WorldSubject } from './world.ts';

/** A holder on both sides; only on one: the other has no subjects. */
export interface HolderPair {
  readonly holder: AccessHolder;
  readonly before: readonly WorldSubject[] | undefined;
  readonly after: readonly WorldSubject[] | undefined;
}

/** Cells of one holder that flip for one reason. */
export interface Block {
  readonly change: 'gained' | 'lost';
  readonly mappings: readonly number[];
  readonly addresses: AddressSet;
  readonly rules: readonly AccessFlipRule[];
}

/** Puts together what flips alike, for whomever. */
export class FlipGroups {
  readonly #judges: Judges;
  readonly #flips = new Map<string, AccessFlip>();

  constructor(judges: Judges) {
    this.#judges = judges;
  }

  add({ holder, before, after }: HolderPair, { change, mappings, addresses, rules }: Block): void {
    const reason = before === undefined ? 'holder added' : after === undefined ? 'holder removed' : 'rules';
    const texts = formatAddresses(addresses);
    const key = JSON.stringify([change, reason, rules, texts, mappings]);
    const known = this.#flips.get(key);
    if (known !== undefined) {
      known.holders.push(holder);
      return;
    }
    const ids = mappings.flatMap((position) => this.#judges.mappings[position]?.id ?? []);
    this.#flips.set(key, { change, holders: [holder], mappings: ids, addresses: texts, reason, rules: [...rules] });
  }

  diff(): AccessDiff {
    const flips = [...this.#flips.values()];
    return { gained: pairsOf(flips, 'gained'), lost: pairsOf(flips, 'lost'), flips };
  }
}

/** Pairs of a holder and a mapping; one that flips at several addresses for several reasons counts once. */
function pairsOf(flips: readonly AccessFlip[], change: 'gained' | 'lost'): number {
  const pairs = new Set<string>();
  for (const flip of flips) {
    if (flip.change !== change) continue;
    for (const { id } of flip.holders) for (const mapping of flip.mappings) pairs.add(`${id} ${mapping}`);
  }
  return pairs.size;
}
