import type { Mapping } from '../../domain/model.ts';
import type { AccessChanges, AccessFlip, AccessFlipRule, AccessHolder } from '../../generated/types.ts';
import { type AddressSet, formatAddresses } from '../world/address-classes.ts';
import type { Shown } from '../world/candidates.ts';
import type { Judges } from '../world/judges.ts';
import type { WorldSubject } from '../world/world.ts';

/** A holder on both sides; only on one: the other has no subjects. */
export interface HolderPair {
  readonly holder: AccessHolder;
  /** Whether they can call a mapping, on one side at least. */
  readonly hasCredential: (mapping: Mapping) => boolean;
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

/** Puts together what flips alike, across holders; what they cannot call for lack of a credential apart. */
export class FlipGroups {
  readonly #judges: Judges;
  readonly #flips = new Map<string, AccessFlip>();

  constructor(judges: Judges) {
    this.#judges = judges;
  }

  add(pair: HolderPair, block: Block): void {
    const flipping = block.mappings.flatMap((position) => this.#judges.mappings[position] ?? []);
    const [callable = [], others = []] = [true, false].map((wanted) =>
      flipping.filter((mapping) => pair.hasCredential(mapping) === wanted).map(({ id }) => id),
    );
    this.#add(pair, block, callable, true);
    this.#add(pair, block, others, false);
  }

  #add({ holder, before, after }: HolderPair, block: Block, mappings: string[], credential: boolean): void {
    if (mappings.length === 0) return;
    const { change, addresses, rules } = block;
    const reason = before === undefined ? 'holder added' : after === undefined ? 'holder removed' : 'rules';
    const texts = formatAddresses(addresses);
    const key = JSON.stringify([change, credential, reason, rules, texts, mappings]);
    const known = this.#flips.get(key);
    if (known !== undefined) {
      known.holders.push(holder);
      return;
    }
    const flip: AccessFlip = {
      change,
      holders: [holder],
      mappings,
      credential,
      addresses: texts,
      reason,
      rules: [...rules],
    };
    this.#flips.set(key, flip);
  }

  changes({ withoutCredential }: Shown): AccessChanges {
    const flips = [...this.#flips.values()];
    const [callable = [], others = []] = [true, false].map((wanted) =>
      flips.filter(({ credential }) => credential === wanted),
    );
    return {
      gained: pairsOf(callable, 'gained'),
      lost: pairsOf(callable, 'lost'),
      withoutCredential: { gained: pairsOf(others, 'gained'), lost: pairsOf(others, 'lost') },
      flips: withoutCredential ? flips : callable,
    };
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
