import type { PolicyInput, ReplayDimension, ReplayResult } from '../../generated/types.ts';
import type { LoggedVerdict } from '../../store/ledger/logged-verdicts.ts';
import { ChangeGroups, type Counted, NONE, withCalls } from './change-groups.ts';
import type { AlikeCalls } from './gather-decided.ts';
import type { JudgedBy, Judgement, Unjudged } from './judge-again.ts';
import { verdictChange } from './verdict-change.ts';

const MOST_DIFFERENCES = 100;

interface Difference {
  /** Of the first call. */
  readonly number: number;
  readonly calls: number;
  readonly recorded: ReplayResult;
  readonly replayed: ReplayResult;
}

/** The outcomes of judging again, in numbers of calls. */
export class Tally {
  readonly groups: ChangeGroups;
  /** Made by other policies than the one that judges, by their digests. */
  readonly otherPolicies = new Map<string, number>();
  readonly unjudged = new Map<Unjudged, Counted>();
  readonly differences: Difference[] = [];
  judged = 0;
  /** Judged, by a policy that takes the facts of a request. */
  withoutFacts = 0;
  identical = 0;
  different = 0;
  readonly #by: JudgedBy;

  constructor(by: JudgedBy, groupBy: readonly ReplayDimension[]) {
    this.#by = by;
    this.groups = new ChangeGroups(groupBy);
  }

  add(verdict: LoggedVerdict, input: PolicyInput, judgement: Judgement | Unjudged, calls: readonly AlikeCalls[]): void {
    if (typeof judgement === 'string') {
      this.addUnjudged(judgement, calls);
      return;
    }
    const { bundleDigest } = verdict;
    const isOther = bundleDigest !== this.#by.pdp.bundleDigest;
    const lacksFacts = this.#by.pdp.takesFacts && input.facts === undefined;
    const change = verdictChange(verdict, input, judgement);
    for (const alike of calls) {
      this.judged += alike.calls;
      if (lacksFacts) this.withoutFacts += alike.calls;
      if (isOther) this.otherPolicies.set(bundleDigest, (this.otherPolicies.get(bundleDigest) ?? 0) + alike.calls);
      else if (this.#by.subjectsOf === null) this.#compare(verdict, judgement.recorded, alike);
      if (change !== undefined) this.groups.add(change, alike);
    }
  }

  addUnjudged(reason: Unjudged, calls: readonly AlikeCalls[]): void {
    for (const alike of calls) this.unjudged.set(reason, withCalls(this.unjudged.get(reason) ?? NONE, alike));
  }

  #compare(verdict: LoggedVerdict, replayed: ReplayResult, { calls, first }: AlikeCalls): void {
    const { outcome, reasonJson, violationsJson, shadowJson } = verdict;
    const isEqual =
      outcome === replayed.outcome &&
      reasonJson === replayed.reasonJson &&
      violationsJson === replayed.violationsJson &&
      shadowJson === replayed.shadowJson;
    if (isEqual) {
      this.identical += calls;
      return;
    }
    this.different += calls;
    if (this.differences.length === MOST_DIFFERENCES) return;
    const recorded = { outcome, reasonJson, violationsJson, shadowJson };
    this.differences.push({ number: first, calls, recorded, replayed });
  }
}
