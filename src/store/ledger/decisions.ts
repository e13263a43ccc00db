import { hash } from 'node:crypto';
import type { Selectable } from 'kysely';
import { notFound } from '../../domain/errors.ts';
import type { Database } from '../db/database.ts';
import { decodeCursor, type Page, type PageRequest, toPage } from '../db/page.ts';
import { bind, build, prepare } from '../db/sql.ts';
import type { DecisionsTable } from '../db/tables.ts';
import { isInParts, prepareTextParts, readJoined } from '../db/text-parts.ts';

/** A decision as it is recorded with its call. `*Json` are JSON texts, written as they are. */
export interface DecisionRecord {
  readonly id: string;
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

/** What a decision keeps of the call that it judged. */
export interface DecidedCall {
  readonly id: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly action: string;
  readonly requestedModel: string;
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
  readonly reason: unknown;
  readonly violations: unknown;
  readonly shadow: unknown;
  readonly bundleDigest: string;
  readonly dataDigest: string;
  readonly ruleRevision: number;
  readonly input: unknown;
}

const toDecision = (row: Selectable<DecisionsTable>): StoredDecision => ({
  id: row.id,
  organizationId: row.organization_id,
  keyId: row.key_id,
  callId: row.call_id,
  createdAt: row.created_at,
  action: row.action,
  requestedModel: row.requested_model,
  outcome: row.outcome,
  reason: row.reason_json === null ? null : JSON.parse(row.reason_json),
  violations: JSON.parse(row.violations_json),
  shadow: row.shadow_json === null ? null : JSON.parse(row.shadow_json),
  bundleDigest: row.bundle_digest,
  dataDigest: row.data_digest,
  ruleRevision: row.rule_revision,
  input: JSON.parse(row.input_json),
});

const insertDecision = build.insertInto('decisions').values({
  id: bind<string>('id'),
  organization_id: bind<string>('organizationId'),
  key_id: bind<string>('keyId'),
  call_id: bind<string>('callId'),
  created_at: bind<number>('now'),
  action: bind<string>('action'),
  requested_model: bind<string>('requestedModel'),
  outcome: bind<'permit' | 'deny'>('outcome'),
  reason_json: bind<string | null>('reasonJson'),
  violations_json: bind<string>('violationsJson'),
  shadow_json: bind<string | null>('shadowJson'),
  bundle_digest: bind<string>('bundleDigest'),
  data_digest: bind<string>('dataDigest'),
  rule_revision: bind<number>('ruleRevision'),
  input_json: bind<string>('inputJson'),
});

const insertDocument = build
  .insertInto('data_documents')
  .values({ digest: bind<string>('dataDigest'), text: bind<string>('dataText'), created_at: bind<number>('now') })
  .onConflict((conflict) => conflict.column('digest').doNothing());

/** Digests of documents known to be stored; after so many they are forgotten, and documents are offered to the database again. */
const KNOWN_DIGESTS = 10_000;

export interface DecisionRecorder {
  /** Records a decision with its call, and the data document that it saw unless that is known to be stored. */
  insert(call: DecidedCall, decision: DecisionRecord, now: number): void;
  /** Tells that the transaction of `insert` was committed: only then is the document known to be stored. */
  committed(decision: DecisionRecord): void;
}

export function createDecisionRecorder(db: Database): DecisionRecorder {
  const insert = prepare(db.connection, insertDecision.compile());
  const document = prepare(db.connection, insertDocument.compile());
  const known = new Set<string>();
  return {
    insert(call, decision, now) {
      insert.run({
        ...decision,
        callId: call.id,
        organizationId: call.organizationId,
        keyId: call.keyId,
        action: call.action,
        requestedModel: call.requestedModel,
        now,
      });
      if (known.has(decision.dataDigest)) return;
      document.run({ dataDigest: decision.dataDigest, dataText: decision.dataText, now });
    },
    committed(decision) {
      if (known.size >= KNOWN_DIGESTS) known.clear();
      known.add(decision.dataDigest);
    },
  };
}

/** The decision, or a 404 when the organization has none of that id. */
export function getDecision(db: Database, organizationId: string, id: string): StoredDecision {
  const row = db.get(
    build.selectFrom('decisions').selectAll().where('organization_id', '=', organizationId).where('id', '=', id),
  );
  if (row === undefined) throw notFound('There is no such decision.');
  return toDecision(row);
}

export interface DecisionFilter {
  readonly keyId?: string | undefined;
  readonly outcome?: 'permit' | 'deny' | undefined;
  /** Epoch ms, inclusive. */
  readonly from?: number | undefined;
  /** Epoch ms, exclusive. */
  readonly to?: number | undefined;
}

/** Decisions, newest first. Reads many rows: run it in a worker on a read-only connection. */
export function listDecisions(
  db: Database,
  organizationId: string,
  filter: DecisionFilter,
  page: PageRequest,
): Page<StoredDecision> {
  let query = build
    .selectFrom('decisions')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('id', 'desc')
    .limit(page.limit + 1);
  if (filter.keyId !== undefined) query = query.where('key_id', '=', filter.keyId);
  if (filter.outcome !== undefined) query = query.where('outcome', '=', filter.outcome);
  if (filter.from !== undefined) query = query.where('created_at', '>=', filter.from);
  if (filter.to !== undefined) query = query.where('created_at', '<', filter.to);
  if (page.cursor !== undefined) query = query.where('id', '<', decodeCursor(page.cursor));
  return toPage(db.all(query).map(toDecision), page.limit);
}

/**
 * Text of the data document that a decision of the organization saw, or a 404.
 * @throws Error when the parts that are stored do not make that text
 */
export function getDataDocument(db: Database, organizationId: string, decisionId: string): string {
  const row = db.get(
    build
      .selectFrom('decisions')
      .innerJoin('data_documents', 'data_documents.digest', 'decisions.data_digest')
      .select(['data_documents.digest', 'data_documents.text'])
      .where('decisions.organization_id', '=', organizationId)
      .where('decisions.id', '=', decisionId),
  );
  if (row === undefined) throw notFound('There is no such decision.');
  if (!isInParts(row.text)) return row.text;
  const text = readJoined(prepareTextParts(db, 'compiled_parts'), row.text);
  if (hash('sha256', text) !== row.digest)
    throw new Error(`The data document of ${decisionId} is not what was stored.`);
  return text;
}
