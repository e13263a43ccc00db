import { recordedResult } from '../../core/access/authorize.ts';
import type { PolicyDecision, PolicyInput, ReplayResult, ReplayUnjudged } from '../../generated/types.ts';
import { getOrMake } from '../../lib/get-or-make.ts';
import { compileSubjectRules, type DataDocument, dataDocument } from '../../policy/data-document.ts';
import { type DenialReason, denialReason } from '../../policy/denial-reason.ts';
import type { Pdp } from '../../policy/pdp.ts';
import { PolicyFailure } from '../../policy/policy-failure.ts';
import type { Database } from '../../store/db/database.ts';
import { findDocument, type LoggedVerdict } from '../../store/ledger/logged-verdicts.ts';
import type { WorldSubject } from '../world/world.ts';

/** Whose rules a key's calls meet, by its id; undefined: there is no such key. */
export type SubjectsOf = (keyId: string) => readonly WorldSubject[] | undefined;

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
  /** Fast for verdicts in the order of `listVerdicts`. */
  judge(verdict: LoggedVerdict, input: PolicyInput): Judgement | Unjudged;
  /** Of the rules that judged, by their ids. */
  readonly descriptions: ReadonlyMap<string, string | null>;
}

/** Judges logged inputs. What was asked of the same data again, one after the other, is judged once. */
export function createJudgeAgain(db: Database, { pdp, subjectsOf }: JudgedBy): JudgeAgain {
  const descriptions = new Map<string, string | null>();
  const askedOf = subjectsOf === null ? recordedDocuments(db) : presentDocuments(subjectsOf, descriptions);
  let digest = '';
  /** By the text of the input, of the data document that was last asked. */
  const known = new Map<string, Judgement | 'failed'>();
  return {
    descriptions,
    judge(verdict, input) {
      const asked = askedOf(verdict, input);
      if (typeof asked === 'string') return asked;
      const { subjects, data } = asked;
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

/** Whose rules judge an input, and the rules. */
interface Asked extends Pick<PolicyInput, 'subjects'> {
  readonly data: DataDocument;
}

type AskedOf = (verdict: LoggedVerdict, input: PolicyInput) => Asked | Unjudged;

function recordedDocuments(db: Database): AskedOf {
  let latest: { readonly id: number; readonly document: DataDocument | Unjudged } | undefined;
  return (verdict, { subjects }) => {
    const { document: id } = verdict;
    if (id === null) return 'not_on_record';
    if (latest?.id !== id) latest = { id, document: findDocument(db, verdict) ?? 'not_on_record' };
    return typeof latest.document === 'string' ? latest.document : { subjects, data: latest.document };
  };
}

/** By the groups that a key is in now. Each subject's rules are compiled by the code that compiles them for the gateway. */
function presentDocuments(subjectsOf: SubjectsOf, descriptions: Map<string, string | null>): AskedOf {
  const texts = new Map<string, string>();
  const byKey = new Map<string, Asked | 'subject_gone'>();
  const textOf = ({ id, rules }: WorldSubject): string =>
    getOrMake(texts, id, () => {
      for (const rule of rules) descriptions.set(rule.id, rule.description);
      return compileSubjectRules(rules);
    });
  return (_, { subjects }) => {
    const keyId = subjects.find(({ scope }) => scope === 'key')?.id ?? '';
    return getOrMake<string, Asked | 'subject_gone'>(byKey, keyId, () => {
      const present = subjectsOf(keyId);
      if (present === undefined) return 'subject_gone';
      const data = dataDocument(present.map((subject) => ({ id: subject.id, rules: textOf(subject) })));
      return { subjects: present.map(({ scope, id }) => ({ scope, id })), data };
    });
  };
}
