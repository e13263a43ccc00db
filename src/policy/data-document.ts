import { hash } from 'node:crypto';
import type { PolicyRule } from '../domain/iam-rule.ts';
import { type Canonical, canonicalJson } from './canonical-json.ts';
import { PolicyFailure } from './policy-failure.ts';
import { ruleSet } from './rule-set.ts';

export interface DataDocument {
  /** JSON text of a `PolicyData`. */
  readonly text: string;
  /** SHA-256 of the text, hex. */
  readonly digest: string;
}

/**
 * The rules of one subject as `SubjectRules` (schemas/policy/data.json): JSON text, a pure function of the active rules, in
 * whatever order they come.
 * @throws PolicyFailure for rules that admin would not have stored: their subject cannot be judged.
 */
export function compileSubjectRules(rules: readonly PolicyRule[]): string {
  const ids = new Set(rules.map((rule) => rule.id));
  if (ids.size !== rules.length || ids.has('')) throw new PolicyFailure('Rule ids must be unique and not empty.');
  const enforced = rules.filter((rule) => rule.mode === 'enforce');
  const reported = rules.filter((rule) => rule.mode === 'report');
  if (enforced.length + reported.length !== rules.length) throw new PolicyFailure('A rule has an unknown mode.');
  const subject = new Map<string, Canonical>([['enforce', ruleSet(enforced)]]);
  if (reported.length > 0) {
    subject.set('shadow', ruleSet(rules));
    subject.set('report_rules', new Map<string, true>(reported.map((rule) => [rule.id, true])));
  }
  return canonicalJson(subject);
}

/** A subject with its compiled rules, or with what stands for them. */
export interface SubjectText {
  readonly id: string;
  readonly rules: string;
}

/** The pieces of which the text of a data document is made; each subject's rules are one. @throws PolicyFailure when a subject comes twice. */
export function documentPieces(subjects: readonly SubjectText[]): string[] {
  const sorted = [...subjects].sort((a, b) => (a.id < b.id ? -1 : 1));
  const pieces = ['{"subjects":{'];
  let previous: string | null = null;
  for (const { id, rules } of sorted) {
    if (id === previous) throw new PolicyFailure(`The subject "${id}" comes twice.`);
    pieces.push(`${previous === null ? '' : ','}${JSON.stringify(id)}:`, rules);
    previous = id;
  }
  pieces.push('}}');
  return pieces;
}

/** The data document of some subjects, each with its compiled rules. @throws PolicyFailure when a subject comes twice. */
export function dataDocument(subjects: readonly SubjectText[]): DataDocument {
  const text = documentPieces(subjects).join('');
  return { text, digest: hash('sha256', text) };
}
