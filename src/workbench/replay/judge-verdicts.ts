import type { PolicyInput, ReplayResult } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { type LoggedVerdict, listVerdicts } from '../../store/ledger/logged-verdicts.ts';
import { createJudgeAgain, type JudgedBy, type Judgement, type Unjudged } from './judge-again.ts';
import { type VerdictChange, verdictChange } from './verdict-change.ts';

/** How a verdict came out that was judged again. Plain data: threads send it. */
export interface VerdictOutcome {
  /** Null: it permits and denies the same. */
  readonly change: VerdictChange | null;
  /** The digest of the policy that had decided, where that is not the one that judged. */
  readonly otherPolicy: string | null;
  /** The policy takes facts, and the decision has none. */
  readonly lacksFacts: boolean;
  /** With the recorded rules and the same policy: null where it is byte for byte as recorded. Else absent. */
  readonly difference?: Difference | null;
}

export interface Difference {
  readonly recorded: ReplayResult;
  readonly replayed: ReplayResult;
}

export interface JudgedVerdict {
  readonly id: number;
  readonly outcome: VerdictOutcome | Unjudged;
}

/** Judges verdicts by their ids, which come in the order of their data; one that is gone is left out. Reads many rows: not for the serving thread. */
export function createVerdictJudge(db: Database, by: JudgedBy): (ids: readonly number[]) => Generator<JudgedVerdict> {
  const { judge } = createJudgeAgain(db, by);
  return function* (ids) {
    for (const verdict of listVerdicts(db, ids)) {
      const input: PolicyInput = JSON.parse(verdict.inputJson);
      const judgement = judge(verdict, input);
      const outcome = typeof judgement === 'string' ? judgement : outcomeOf(by, verdict, input, judgement);
      yield { id: verdict.id, outcome };
    }
  };
}

function outcomeOf(
  { pdp, subjectsOf }: JudgedBy,
  verdict: LoggedVerdict,
  input: PolicyInput,
  judgement: Judgement,
): VerdictOutcome {
  const { bundleDigest } = verdict;
  const isOther = bundleDigest !== pdp.bundleDigest;
  return {
    change: verdictChange(verdict, input, judgement) ?? null,
    otherPolicy: isOther ? bundleDigest : null,
    lacksFacts: pdp.takesFacts && input.facts === undefined,
    ...(subjectsOf === null && !isOther ? { difference: differenceOf(verdict, judgement.recorded) } : {}),
  };
}

function differenceOf(
  { outcome, reasonJson, violationsJson, shadowJson }: LoggedVerdict,
  replayed: ReplayResult,
): Difference | null {
  const isEqual =
    outcome === replayed.outcome &&
    reasonJson === replayed.reasonJson &&
    violationsJson === replayed.violationsJson &&
    shadowJson === replayed.shadowJson;
  return isEqual ? null : { recorded: { outcome, reasonJson, violationsJson, shadowJson }, replayed };
}
