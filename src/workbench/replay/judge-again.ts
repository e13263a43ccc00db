import { recordedResult } from '../../core/access/authorize.ts';
import type { PolicyDecision, PolicyInput, ReplayResult, ReplayUnjudged } from '../../generated/types.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../policy/data-document.ts';
import { type DenialReason, denialReason } from '../../policy/denial-reason.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { PolicyFailure } from '../../policy/policy-failure.ts';
import type { Database } from '../../store/db/database.ts';
import { findDocument, type LoggedVerdict } from '../../store/ledger/logged-verdicts.ts';
import type { WorldRule } from '../world/world.ts';

/** The active rules of a subject, by its id; undefined: there is no such subject. */
export type RulesOf = (subjectId: string) => readonly WorldRule[] | undefined;

/** By what a logged decision is judged. */
export interface JudgedBy {
  readonly pdp: Pdp;
  /** Null: each decision is judged by the data that it saw. */
  readonly rulesOf: RulesOf | null;
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
  /** Fast for verdicts in the order of `listVerdicts`. */
  judge(verdict: LoggedVerdict, input: PolicyInput): Judgement | Unjudged;
  /** Of the rules that judged, by their ids. */
  readonly descriptions: ReadonlyMap<string, string | null>;
}

/** Judges logged inputs. What was asked of the same data again, one after the other, is judged once. */
export function createJudgeAgain(db: Database, { pdp, rulesOf }: JudgedBy): JudgeAgain {
  const descriptions = new Map<string, string | null>();
  const documentOf = rulesOf === null ? recordedDocuments(db) : presentDocuments(rulesOf, descriptions);
  let digest = '';
  /** By the text of the input, of the data document that was last asked. */
  const known = new Map<string, Judgement | 'failed'>();
  return {
    descriptions,
    judge(verdict, input) {
      const data = documentOf(verdict, input);
      if (typeof data === 'string') return data;
      if (data.digest !== digest) known.clear();
      digest = data.digest;
      return getOrMake(known, verdict.inputJson, () => judgementOf(pdp, input, data));
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

type DocumentOf = (verdict: LoggedVerdict, input: PolicyInput) => DataDocument | Unjudged;

function recordedDocuments(db: Database): DocumentOf {
  let latest: { readonly id: number; readonly document: DataDocument | Unjudged } | undefined;
  return (verdict) => {
    const { document: id } = verdict;
    if (id === null) return 'not_on_record';
    if (latest?.id !== id) latest = { id, document: findDocument(db, verdict) ?? 'not_on_record' };
    return latest.document;
  };
}

/** Each subject's rules are compiled by the code that compiles them for the gateway. */
function presentDocuments(rulesOf: RulesOf, descriptions: Map<string, string | null>): DocumentOf {
  const texts = new Map<string, string>();
  const documents = new Map<string, DataDocument | 'subject_gone'>();
  const textOf = (id: string, rules: readonly WorldRule[]): string =>
    getOrMake(texts, id, () => {
      for (const rule of rules) descriptions.set(rule.id, rule.description);
      return compileSubjectRules(rules);
    });
  return (_, { subjects }) =>
    getOrMake(documents, JSON.stringify(subjects.map(({ id }) => id)), () => {
      const compiled = subjects.flatMap(({ id }) => {
        const rules = rulesOf(id);
        return rules === undefined ? [] : [{ id, rules: textOf(id, rules) }];
      });
      return compiled.length < subjects.length ? 'subject_gone' : dataDocument(compiled);
    });
}
