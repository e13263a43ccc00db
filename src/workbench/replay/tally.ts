import type { ReplayDimension } from '../../generated/types.ts';
import { ChangeGroups, type Counted, NONE, withCalls } from './change-groups.ts';
import type { AlikeCalls } from './gather-decided.ts';
import type { Unjudged } from './judge-again.ts';
import type { Difference, VerdictOutcome } from './judge-verdicts.ts';

const MOST_DIFFERENCES = 100;

interface CountedDifference extends Difference {
  /** Of the first call. */
  readonly number: number;
  readonly calls: number;
}

/** The outcomes of judging again, in numbers of calls. */
export class Tally {
  readonly groups: ChangeGroups;
  /** Made by other policies than the one that judges, by their digests. */
  readonly otherPolicies = new Map<string, number>();
  readonly unjudged = new Map<Unjudged, Counted>();
  readonly differences: CountedDifference[] = [];
  judged = 0;
  /** Judged, by a policy that takes the facts of a request. */
  withoutFacts = 0;
  identical = 0;
  different = 0;

  constructor(groupBy: readonly ReplayDimension[]) {
    this.groups = new ChangeGroups(groupBy);
  }

  add(outcome: VerdictOutcome | Unjudged, calls: readonly AlikeCalls[]): void {
    if (typeof outcome === 'string') {
      this.addUnjudged(outcome, calls);
      return;
    }
    const { change, otherPolicy, lacksFacts, difference } = outcome;
    for (const alike of calls) {
      this.judged += alike.calls;
      if (lacksFacts) this.withoutFacts += alike.calls;
      if (otherPolicy !== null) {
        this.otherPolicies.set(otherPolicy, (this.otherPolicies.get(otherPolicy) ?? 0) + alike.calls);
      }
      if (difference !== undefined) this.#addProof(difference, alike);
      if (change !== null) this.groups.add(change, alike);
    }
  }

  addUnjudged(reason: Unjudged, calls: readonly AlikeCalls[]): void {
    for (const alike of calls) this.unjudged.set(reason, withCalls(this.unjudged.get(reason) ?? NONE, alike));
  }

  #addProof(difference: Difference | null, { calls, first }: AlikeCalls): void {
    if (difference === null) {
      this.identical += calls;
      return;
    }
    this.different += calls;
    if (this.differences.length < MOST_DIFFERENCES) this.differences.push({ number: first, calls, ...difference });
  }
}
