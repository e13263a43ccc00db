import type { ReplayChange, ReplayDimension } from '../../generated/types.ts';
import type { AlikeCalls } from './gather-decided.ts';
import type { ChangeRule, VerdictChange } from './verdict-change.ts';

const MOST_EXAMPLES = 3;

/** How many calls are meant, and the numbers of the first of them, ascending; of those that are alike, of one. */
export interface Counted {
  calls: number;
  examples: readonly number[];
}

export const NONE: Counted = { calls: 0, examples: [] };

export const withCalls = ({ calls, examples }: Counted, alike: Pick<AlikeCalls, 'calls' | 'first'>): Counted => ({
  calls: calls + alike.calls,
  examples: [...examples, alike.first].sort((a, b) => a - b).slice(0, MOST_EXAMPLES),
});

/** What it is not grouped by is null. */
export interface ChangeGroup extends Counted {
  readonly change: ReplayChange;
  readonly keyId: string | null;
  readonly memberId: string | null;
  readonly model: string | null;
  readonly ruleIds: readonly string[] | null;
}

/** Puts together what changed alike. */
export class ChangeGroups {
  readonly #groupBy: ReadonlySet<ReplayDimension>;
  readonly #groups = new Map<string, ChangeGroup>();
  /** Those of the groups, by their ids. */
  readonly rules = new Map<string, ChangeRule>();
  /** Calls, by what changed. */
  readonly counts: Record<ReplayChange, number> = { denied: 0, permitted: 0, widened: 0, narrowed: 0 };

  constructor(groupBy: readonly ReplayDimension[]) {
    this.#groupBy = new Set(groupBy);
  }

  add({ change, rules }: VerdictChange, alike: AlikeCalls): void {
    const by = <T>(dimension: ReplayDimension, value: T): T | null => (this.#groupBy.has(dimension) ? value : null);
    const place = {
      change,
      keyId: by('key', alike.keyId),
      memberId: by('member', alike.memberId),
      model: by('model', alike.requestedModel),
      ruleIds: by(
        'rule',
        rules.map(({ id }) => id),
      ),
    };
    const key = JSON.stringify(place);
    this.#groups.set(key, { ...place, ...withCalls(this.#groups.get(key) ?? NONE, alike) });
    this.counts[change] += alike.calls;
    for (const rule of rules) this.rules.set(rule.id, rule);
  }

  /** Those of most calls first; among equals the one whose first call came first. */
  sorted(): ChangeGroup[] {
    return [...this.#groups.values()].sort((a, b) => b.calls - a.calls || (a.examples[0] ?? 0) - (b.examples[0] ?? 0));
  }
}
