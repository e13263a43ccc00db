import { hash } from 'node:crypto';
import { notFound } from '../../domain/errors.ts';
import type { DenialStep, PolicyInput, PolicyShadow, PolicyViolation } from '../../generated/types.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import type { DecisionsView } from '../db/tables.ts';
import { isInParts, prepareTextParts, readJoined } from '../db/text-parts.ts';
import { findNumber } from './call-place.ts';

/** A decision as it is recorded with its call. `*Json` are JSON texts, written as they are. */
export interface DecisionRecord {
  readonly outcome: 'permit' | 'deny';
  /** The answer to the caller; null for a permit. */
  readonly reasonJson: string | null;
  readonly violationsJson: string;
  /** The shadow decision of the report rules; null when there are none. */
  readonly shadowJson: string | null;
  readonly bundleDigest: string;
  /** Digest of the data document that was seen, and its text or what `joinStored` makes of it. */
  readonly dataDigest: string;
  readonly dataText: string;
  readonly ruleRevision: number;
  /** The whole input, so that the decision can be replayed. */
  readonly inputJson: string;
}

/** A recorded decision, read back. */
export interface StoredDecision {
  readonly id: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly callId: string;
  readonly createdAt: number;
  readonly action: string;
  readonly requestedModel: string;
  readonly outcome: 'permit' | 'deny';
  /** The step that left no candidate; null for a permit. */
  readonly reason: DenialStep | null;
  readonly violations: PolicyViolation[];
  readonly shadow: PolicyShadow | null;
  readonly bundleDigest: string;
  readonly dataDigest: string;
  readonly ruleRevision: number;
  readonly input: PolicyInput;
}

const toDecision = ({
  number: _,
  reasonJson,
  violationsJson,
  shadowJson,
  inputJson,
  ...row
}: DecisionsView): StoredDecision => ({
  ...row,
  reason: reasonJson === null ? null : JSON.parse(reasonJson),
  violations: JSON.parse(violationsJson),
  shadow: shadowJson === null ? null : JSON.parse(shadowJson),
  input: JSON.parse(inputJson),
});

/** The decision of this id, among the rows of the organization. */
function ofId(db: Database, organizationId: string, id: string) {
  const number = findNumber(db, organizationId, id);
  if (number === undefined) throw notFound('There is no such decision.');
  return build
    .selectFrom('decisions')
    .where('decisions.organizationId', '=', organizationId)
    .where('decisions.number', '=', number);
}

/** The decision, or a 404 when the organization has none of that id. Not for the serving thread: it may look at many rows. */
export function getDecision(db: Database, organizationId: string, id: string): StoredDecision {
  const row = db.get(ofId(db, organizationId, id).selectAll());
  if (row === undefined) throw notFound('There is no such decision.');
  return toDecision(row);
}

/**
 * Text of the data document that a decision of the organization saw, or a 404.
 * @throws Error when the parts that are stored do not make that text
 */
export function getDataDocument(db: Database, organizationId: string, decisionId: string): string {
  const row = db.get(
    ofId(db, organizationId, decisionId)
      .innerJoin('data_documents', 'data_documents.digest', 'decisions.dataDigest')
      .select(['data_documents.digest', 'data_documents.text']),
  );
  if (row === undefined) throw notFound('There is no such decision.');
  const text = documentText(db, row.text);
  if (isInParts(row.text) && hash('sha256', text) !== row.digest)
    throw new Error(`The data document of ${decisionId} is not what was stored.`);
  return text;
}

/** The text of a data document, by what its row holds. @throws Error when a part of it is missing */
export const documentText = (db: Database, stored: string): string =>
  isInParts(stored) ? readJoined(prepareTextParts(db, 'compiled_parts'), stored) : stored;
