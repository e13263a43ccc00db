import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { LRUCache } from 'lru-cache';
import { notFound } from '../../domain/errors.ts';
import type { DenialStep, PolicyInput, PolicyShadow, PolicyViolation } from '../../generated/types.ts';
import type { DecisionsView, Flag } from '../db/call-tables.ts';
import type { Database } from '../db/database.ts';
import { bind, build, type PreparedStatement, prepare, type SqlValue, toFlag } from '../db/sql.ts';
import { isInParts, prepareTextParts, readJoined } from '../db/text-parts.ts';
import { findNumber } from './call-search.ts';

/** Callers, with what they ask for. */
export interface CallOrigin {
  readonly organizationId: string;
  readonly projectId: string;
  readonly keyId: string;
  readonly memberId: string;
  readonly action: string;
  /** The MCP tool that was called; null for other doors. */
  readonly tool: string | null;
  readonly requestedModel: string;
  readonly stream: boolean;
}

/** Provider and model that served a call, or would have; null: none. */
export interface CallTarget {
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly providerKeyId: string | null;
  /** JSON: the attempts, as in `metadata.routing`. */
  readonly attemptsJson: string | null;
}

/** A decision, and the address of the caller. */
interface CallVerdict {
  readonly decision: DecisionRecord;
  readonly clientAddress: string | null;
}

/** The integers by which a call refers to what repeats from call to call. `day` is the UTC day of the call's number. */
export interface CallReferences {
  origin(origin: CallOrigin, day: number): number;
  /** The decision as it was judged, with the document that it saw. */
  verdict(verdict: CallVerdict, day: number): number;
  /** Null where no one served. @param callId which the attempts name */
  target(target: CallTarget, callId: string, day: number): number | null;
  /** The transaction was committed, or undone. */
  ended(committed: boolean): void;
}

const noted = { digest: bind<Buffer>('digest'), usedOn: bind<number>('day') };
const lastDay = { usedOn: sql<number>`max(usedOn, excluded.usedOn)` };

const storeOrigin = build
  .insertInto('call_origins')
  .values({
    ...noted,
    organizationId: bind<string>('organizationId'),
    projectId: bind<string>('projectId'),
    keyId: bind<string>('keyId'),
    memberId: bind<string>('memberId'),
    action: bind<string>('action'),
    tool: bind<string | null>('tool'),
    requestedModel: bind<string>('requestedModel'),
    stream: bind<Flag>('stream'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeVerdict = build
  .insertInto('call_verdicts')
  .values({
    ...noted,
    document: bind<number>('document'),
    clientAddress: bind<string | null>('clientAddress'),
    outcome: bind<'permit' | 'deny'>('outcome'),
    bundleDigest: bind<string>('bundleDigest'),
    ruleRevision: bind<number>('ruleRevision'),
    reasonJson: bind<string | null>('reasonJson'),
    violationsJson: bind<string>('violationsJson'),
    shadowJson: bind<string | null>('shadowJson'),
    inputJson: bind<string>('inputJson'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeDocument = build
  .insertInto('data_documents')
  .values({ digest: bind<string>('dataDigest'), usedOn: bind<number>('day'), text: bind<string>('dataText') })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

const storeTarget = build
  .insertInto('call_targets')
  .values({
    ...noted,
    providerId: bind<string | null>('providerId'),
    modelId: bind<string | null>('modelId'),
    providerKeyId: bind<string | null>('providerKeyId'),
    attemptsJson: bind<string | null>('attemptsJson'),
  })
  .onConflict((conflict) => conflict.column('digest').doUpdateSet(lastDay))
  .returning('id');

/** No value is an empty text or has a zero character in it: so only equal values have one key. */
const keyOf = (values: readonly SqlValue[]): string => values.join('\0');

function idBy(statement: PreparedStatement<{ id: number }>, values: Readonly<Record<string, SqlValue>>): number {
  const row = statement.get(values);
  if (row === undefined) throw new Error('What a call refers to was not stored.');
  return row.id;
}

/** The text that tells a caller from all others; the row's `digest` is over it. */
export const originKey = (origin: Omit<CallOrigin, 'stream'> & { readonly stream: boolean | Flag }): string => {
  const { organizationId, projectId, keyId, memberId, action, tool, requestedModel, stream } = origin;
  return keyOf([organizationId, projectId, keyId, memberId, action, tool, requestedModel, stream ? 1 : 0]);
};

/** The text that tells a decision from all others, in the same sense. */
export const verdictKey = (made: Omit<DecisionRecord, 'dataText'>, clientAddress: string | null): string => {
  const seen = [clientAddress, made.bundleDigest, made.ruleRevision, made.dataDigest, made.inputJson];
  return keyOf([...seen, made.outcome, made.reasonJson, made.violationsJson, made.shadowJson]);
};

/** The text that tells a target from all others, in the same sense. */
export const targetKey = ({ providerId, modelId, providerKeyId, attemptsJson }: CallTarget): string =>
  keyOf([providerId, modelId, providerKeyId, attemptsJson]);

export const referenceDigest = (key: string): Buffer => hash('sha256', key, 'buffer');

export function createCallReferences({ connection }: Database): CallReferences {
  const originStatement = prepare(connection, storeOrigin.compile());
  const origins = new Interned<CallOrigin>((origin, digest, day) =>
    idBy(originStatement, { ...origin, stream: toFlag(origin.stream), digest, day }),
  );
  const documentStatement = prepare(connection, storeDocument.compile());
  const documents = new Interned<DecisionRecord>(({ dataDigest, dataText }, _, day) =>
    idBy(documentStatement, { dataDigest, dataText, day }),
  );
  const verdictStatement = prepare(connection, storeVerdict.compile());
  const verdicts = new Interned<CallVerdict>(({ decision, clientAddress }, digest, day) => {
    const document = documents.idOf(decision.dataDigest, decision, day);
    return idBy(verdictStatement, { ...decision, clientAddress, document, digest, day });
  });
  const targetStatement = prepare(connection, storeTarget.compile());
  const targets = new Interned<CallTarget>((target, digest, day) => idBy(targetStatement, { ...target, digest, day }));

  return {
    origin(origin, day) {
      return origins.idOf(originKey(origin), origin, day);
    },
    verdict(verdict, day) {
      return verdicts.idOf(verdictKey(verdict.decision, verdict.clientAddress), verdict, day);
    },
    target({ providerId, modelId, providerKeyId, attemptsJson: attempts }, callId, day) {
      if (providerId === null && modelId === null && attempts === null) return null;
      // All attempts name the call. Without its id they are those of other calls.
      const attemptsJson = attempts?.replaceAll(`"logId":"${callId}"`, '"logId":""') ?? null;
      const target = { providerId, modelId, providerKeyId, attemptsJson };
      return targets.idOf(targetKey(target), target, day);
    },
    ended(committed) {
      for (const each of [origins, verdicts, documents, targets]) each.ended(committed);
    },
  };
}

interface Known {
  readonly id: number;
  readonly usedOn: number;
}

/** Characters of the keys of one table that are remembered. */
const MAX_CHARACTERS = 16_000_000;
/** Bytes that a remembered row takes besides its key, about. */
const OVERHEAD = 100;

/**
 * Rows of one table that many calls refer to. Each tells the last day on which it was referred to: none earlier than that of any call
 * that refers to it, so that retention may delete the rows whose day is over for all calls that are left. What is remembered spares the
 * look into the table for the rest of the day; what a transaction stored that was undone is forgotten.
 */
class Interned<Values> {
  readonly #store: (values: Values, digest: Buffer, day: number) => number;
  readonly #known = new LRUCache<string, Known>({
    maxSize: MAX_CHARACTERS,
    sizeCalculation: (_, key) => key.length + OVERHEAD,
  });
  #uncommitted: string[] = [];

  /** @param store stores the row unless one of its digest is there, notes the day, and returns its id */
  constructor(store: (values: Values, digest: Buffer, day: number) => number) {
    this.#store = store;
  }

  /** @param key tells these values from all others @param day of the call that refers to the row */
  idOf(key: string, values: Values, day: number): number {
    const known = this.#known.get(key);
    if (known !== undefined && known.usedOn >= day) return known.id;
    const id = this.#store(values, referenceDigest(key), day);
    this.#known.set(key, { id, usedOn: day });
    this.#uncommitted.push(key);
    return id;
  }

  /** The transaction was committed, or undone. */
  ended(committed: boolean): void {
    if (this.#uncommitted.length === 0) return;
    if (!committed) for (const key of this.#uncommitted) this.#known.delete(key);
    this.#uncommitted = [];
  }
}

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
