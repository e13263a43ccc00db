import { recordedResult } from '../../core/authorize.ts';
import type {
  DenialStep,
  PolicyDecision,
  PolicyInput,
  PolicyViolation,
  ReplayChange,
  ReplayResult,
  ReplayRule,
  ReplayUnjudged,
} from '../../generated/types.ts';
import { getOrMake } from '../../lib/collections.ts';
import type { Job } from '../../lib/threads.ts';
import type { PolicyBundle } from '../../policy/bundle.ts';
import { compileSubjectRules, type DataDocument, dataDocument, PolicyFailure } from '../../policy/data-document.ts';
import { type DenialReason, denialReason, permittedBy } from '../../policy/denial.ts';
import { createPdp, type Pdp } from '../../policy/pdp.ts';
import { type Database, openDatabase } from '../../store/db/database.ts';
import { findDocument, type LoggedVerdict, listVerdicts } from '../../store/ledger/logged-verdicts.ts';
import { JUDGE_ENGINE } from '../world/judges.ts';
import { keySubjects, type RuleWorld, type WorldSubject } from '../world/world.ts';

/** Finds the subjects whose rules the calls of a key meet, outermost first, by the key's id; undefined: there is no such key. */
export type SubjectsOf = (keyId: string) => readonly WorldSubject[] | undefined;

/** As the rules are in a world. */
export const subjectsIn =
  (world: RuleWorld): SubjectsOf =>
  (keyId) => {
    const key = world.keys.get(keyId);
    return key === undefined ? undefined : keySubjects(world, key);
  };

/** By what a logged decision is judged. */
export interface JudgedBy {
  readonly pdp: Pdp;
  /** Null: each decision is judged by the data that it saw. */
  readonly subjectsOf: SubjectsOf | null;
}

/** A logged decision, judged again. */
interface Judgement {
  readonly decision: PolicyDecision;
  /** Reason of a denial. */
  readonly reason: DenialReason | undefined;
  /** As it would be recorded. */
  readonly recorded: ReplayResult;
}

export type Unjudged = ReplayUnjudged['reason'];

interface JudgeAgain {
  /** Fast for verdicts in the order of their data. */
  judge(verdict: LoggedVerdict, input: PolicyInput): Judgement | Unjudged;
}

/** The data that judges an input, and the subjects that it is judged for. */
interface Question {
  readonly data: DataDocument;
  readonly subjects: PolicyInput['subjects'];
}

type QuestionOf = (verdict: LoggedVerdict, input: PolicyInput) => Question | Unjudged;

/** Judges logged inputs. What was asked of the same data again, one after the other, is judged once. */
export function createJudgeAgain(db: Database, { pdp, subjectsOf }: JudgedBy): JudgeAgain {
  const questionOf = subjectsOf === null ? recordedQuestions(db) : presentQuestions(subjectsOf);
  let digest = '';
  /** By the text of the logged input, of the data document that was last asked. */
  const known = new Map<string, Judgement | 'failed'>();
  return {
    judge(verdict, input) {
      const question = questionOf(verdict, input);
      if (typeof question === 'string') return question;
      const { data, subjects } = question;
      if (data.digest !== digest) known.clear();
      digest = data.digest;
      return getOrMake(known, verdict.inputJson, () => judgementOf(pdp, { ...input, subjects }, data));
    },
  };
}

function judgementOf(pdp: Pdp, input: PolicyInput, data: DataDocument): Judgement | 'failed' {
  try {
    const decision = pdp.decide(input, data);
    const reason = decision.permitted.length === 0 ? denialReason(input, decision) : undefined;
    return { decision, reason, recorded: recordedResult(decision, reason) };
  } catch (error) {
    if (error instanceof PolicyFailure) return 'failed';
    throw error;
  }
}

function recordedQuestions(db: Database): QuestionOf {
  let latest: { readonly id: number; readonly document: DataDocument | Unjudged } | undefined;
  return (verdict, { subjects }) => {
    const { document: id } = verdict;
    if (id === null) return 'not_on_record';
    if (latest?.id !== id) latest = { id, document: findDocument(db, verdict) ?? 'not_on_record' };
    const { document } = latest;
    return typeof document === 'string' ? document : { data: document, subjects };
  };
}

/** For the subjects that a key has now. Their rules are compiled by the code that compiles them for the gateway. */
function presentQuestions(subjectsOf: SubjectsOf): QuestionOf {
  const texts = new Map<string, string>();
  const compiledText = ({ id, rules }: WorldSubject): string => getOrMake(texts, id, () => compileSubjectRules(rules));
  const questionFor = (keyId: string): Question | Unjudged => {
    const subjects = subjectsOf(keyId);
    if (subjects === undefined) return 'subject_gone';
    const data = dataDocument(subjects.map((subject) => ({ id: subject.id, rules: compiledText(subject) })));
    return { data, subjects: subjects.map(({ scope, id }) => ({ scope, id })) };
  };
  const questions = new Map<string, Question | Unjudged>();
  return (_, { subjects }) => {
    const keyId = subjects.find(({ scope }) => scope === 'key')?.id ?? '';
    return getOrMake(questions, keyId, () => questionFor(keyId));
  };
}

/** A rule, and of which group, where it is one's. */
export type ChangeRule = Pick<ReplayRule, 'id' | 'scope' | 'ruleType'> & {
  readonly groupId?: string;
  /** Message of the package `custom`. */
  readonly message?: string;
};

/** Difference between a judgement and the decision on record. */
export interface VerdictChange {
  readonly change: ReplayChange;
  /** The rules that deny on the side that denies, each once. */
  readonly rules: readonly ChangeRule[];
}

/** Undefined: it permits and denies the same. */
function verdictChange(
  { outcome, violationsJson, reasonJson }: LoggedVerdict,
  input: PolicyInput,
  { decision, reason, recorded }: Judgement,
): VerdictChange | undefined {
  if (outcome === recorded.outcome && violationsJson === recorded.violationsJson) return undefined;
  if (outcome === 'deny') {
    if (reason !== undefined) return undefined;
    const then: DenialStep | null = JSON.parse(reasonJson ?? 'null');
    return { change: 'permitted', rules: then === null ? [] : changeRules([then]) };
  }
  if (reason !== undefined) return { change: 'denied', rules: changeRules([reason]) };
  const violations: PolicyViolation[] = JSON.parse(violationsJson);
  const [then, now] = [new Set(permittedBy(input, violations)), new Set(decision.permitted)];
  const gained = now.difference(then);
  if (gained.size > 0) return { change: 'widened', rules: changeRules(violations.filter(against(gained))) };
  const lost = then.difference(now);
  if (lost.size > 0) return { change: 'narrowed', rules: changeRules(decision.violations.filter(against(lost))) };
  return undefined;
}

const against =
  (candidates: ReadonlySet<string>) =>
  ({ candidate }: PolicyViolation): boolean =>
    candidate !== undefined && candidates.has(candidate);

/** A denial, or a violation. */
type Denying = Pick<DenialReason, 'scope' | 'group' | 'kind' | 'effect' | 'ruleIds' | 'values'>;

/** By their ids, each once; what the package `custom` of a bundle denies goes by the id that it states. */
function changeRules(steps: readonly Denying[]): ChangeRule[] {
  const rules = steps.flatMap(({ scope, group, kind, effect, ruleIds, values }) => {
    if (kind === 'custom') {
      const message = values.join(', ');
      return ruleIds.map((id): [string, ChangeRule] => [id, { id, scope, ruleType: 'deny_custom', message }]);
    }
    return ruleIds.map((id): [string, ChangeRule] => {
      const rule = { id, scope, ruleType: `${effect}_${kind}` } as const;
      return [id, group === undefined ? rule : { ...rule, groupId: group }];
    });
  });
  return [...new Map(rules).values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Outcome of judging a verdict again. Plain data: threads send it. */
export interface VerdictOutcome {
  /** Null: it permits and denies the same. */
  readonly change: VerdictChange | null;
  /** The digest of the policy that had decided, where that is not the one that judged. */
  readonly otherPolicy: string | null;
  /** The policy takes facts, and the decision has none. */
  readonly lacksFacts: boolean;
  /** With the recorded rules and the same policy: null where it is byte for byte as recorded. Else absent. */
  readonly difference?: VerdictDifference | null;
}

export interface VerdictDifference {
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

/** Start data of a judging thread, which reads the verdicts itself. */
export interface VerdictJobData {
  readonly databasePath: string;
  readonly bundle: PolicyBundle;
  /** Null: each decision is judged by the data that it saw. */
  readonly rules: RuleWorld | null;
}

export function startJob({
  databasePath,
  bundle,
  rules,
}: VerdictJobData): Job<readonly number[], readonly JudgedVerdict[]> {
  const judge = createVerdictJudge(openDatabase(databasePath, { readonly: true, busyTimeoutMs: 5000 }), {
    pdp: createPdp(bundle, JUDGE_ENGINE),
    subjectsOf: rules === null ? null : subjectsIn(rules),
  });
  return { answer: (ids) => [...judge(ids)] };
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
): VerdictDifference | null {
  const isEqual =
    outcome === replayed.outcome &&
    reasonJson === replayed.reasonJson &&
    violationsJson === replayed.violationsJson &&
    shadowJson === replayed.shadowJson;
  return isEqual ? null : { recorded: { outcome, reasonJson, violationsJson, shadowJson }, replayed };
}
