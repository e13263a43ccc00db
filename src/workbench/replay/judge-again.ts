import { recordedResult } from '../../core/authorize.ts';
import type { PolicyDecision, PolicyInput, ReplayResult, ReplayUnjudged } from '../../generated/types.ts';
import { getOrMake } from '../../lib/collections.ts';
import { compileSubjectRules, type DataDocument, dataDocument, PolicyFailure } from '../../policy/data-document.ts';
import { type DenialReason, denialReason } from '../../policy/denial.ts';
import type { Pdp } from '../../policy/pdp.ts';
import type { Database } from '../../store/db/database.ts';
import { findDocument, type LoggedVerdict } from '../../store/ledger/logged-verdicts.ts';
import { keySubjects, type RuleWorld, type WorldSubject } from '../world/world.ts';

/** Whose rules the calls of a key meet, outermost first, by the key's id; undefined: there is no such key. */
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

/** What a logged decision would be. */
export interface Judgement {
  readonly decision: PolicyDecision;
  /** Of a denial. */
  readonly reason: DenialReason | undefined;
  /** As it would be recorded. */
  readonly recorded: ReplayResult;
}

export type Unjudged = ReplayUnjudged['reason'];

export interface JudgeAgain {
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
  const textOf = ({ id, rules }: WorldSubject): string => getOrMake(texts, id, () => compileSubjectRules(rules));
  const questionFor = (keyId: string): Question | Unjudged => {
    const subjects = subjectsOf(keyId);
    if (subjects === undefined) return 'subject_gone';
    const data = dataDocument(subjects.map((subject) => ({ id: subject.id, rules: textOf(subject) })));
    return { data, subjects: subjects.map(({ scope, id }) => ({ scope, id })) };
  };
  const questions = new Map<string, Question | Unjudged>();
  return (_, { subjects }) => {
    const keyId = subjects.find(({ scope }) => scope === 'key')?.id ?? '';
    return getOrMake(questions, keyId, () => questionFor(keyId));
  };
}
