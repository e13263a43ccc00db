import { LRUCache } from 'lru-cache';
import { ApiError } from '../../domain/errors.ts';
import { type DataDocument, dataDocument, documentPieces } from '../../policy/data-document.ts';
import { PolicyFailure } from '../../policy/policy-failure.ts';
import { assertSubjectRules } from '../../policy/subject-rules.ts';
import { joinStored } from '../../store/db/text-parts.ts';
import type { Store } from '../../store/store.ts';
import type { Principal } from './principal.ts';

/** A data document, and how the store keeps it. */
export interface KeptDocument extends DataDocument {
  readonly stored: string;
}

/** The data document of a principal's subjects, by the rules as they are now. */
export type Documents = (principal: Principal) => Promise<KeptDocument>;

/** Most documents that are remembered; one for each busy key. */
const MAX_REMEMBERED = 4096;

/** A scope whose rules cannot be had denies, as every failure of the policy does (policy/README.md, "Evaluation fails?"). */
function rulesUnavailable(cause: unknown): never {
  throw cause instanceof ApiError ? cause : new PolicyFailure('The rules of a subject cannot be read.', cause);
}

/**
 * Reads rules, and remembers the document while no rule of the organization changes. A document read after a change but
 * remembered under the revision before it is only read once more.
 */
export function createDocuments(store: Store): Documents {
  const remembered = new LRUCache<
    string,
    { ruleRevision: number; subjects: Principal['subjects']; document: KeptDocument }
  >({ max: MAX_REMEMBERED });
  /** Texts that were found well formed: most calls share their organization's and member's. */
  const wellFormed = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  const check = (text: string): void => {
    if (wellFormed.get(text) === true) return;
    assertSubjectRules(text);
    wellFormed.set(text, true);
  };

  return async ({ organizationId, keyId, subjects, ruleRevision }) => {
    const known = remembered.get(keyId);
    if (known !== undefined && known.ruleRevision === ruleRevision && areSame(known.subjects, subjects))
      return known.document;
    const ids = subjects.map(({ id }) => id);
    const compiled = [...(await store.subjectRules(organizationId, ids).catch(rulesUnavailable))];
    for (const [, { text }] of compiled) check(text);
    const document = {
      ...dataDocument(compiled.map(([id, { text }]) => ({ id, rules: text }))),
      stored: joinStored(documentPieces(compiled.map(([id, { stored }]) => ({ id, rules: stored })))),
    };
    remembered.set(keyId, { ruleRevision, subjects, document });
    return document;
  };
}

const areSame = (known: Principal['subjects'], subjects: Principal['subjects']): boolean =>
  known.length === subjects.length && known.every(({ id }, at) => id === subjects[at]?.id);
