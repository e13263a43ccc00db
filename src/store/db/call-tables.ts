import type { Generated } from 'kysely';
import type { StoredTokens } from '../../domain/usage.ts';

// Tables of calls and of what is written after them; tables.ts explains how columns are stored.

export type Flag = 0 | 1;

/** The day (UTC, counted from 1970) on which a row was last referred to, or a later one: the row is kept until then. */
interface Interned {
  id: Generated<number>;
  usedOn: number;
}

/** An interned row that is found by a digest over all its other columns. */
interface Digested extends Interned {
  digest: Buffer;
}

/** Callers, with what they ask for. */
export interface CallOriginsTable extends Digested {
  organizationId: string;
  projectId: string;
  keyId: string;
  memberId: string;
  action: string;
  /** The MCP tool that was called; null for other doors. */
  tool: string | null;
  requestedModel: string;
  stream: Flag;
}

/** A decision as it was judged. */
export interface CallVerdictsTable extends Digested {
  /** A row of `data_documents`. */
  document: number;
  clientAddress: string | null;
  outcome: 'permit' | 'deny';
  bundleDigest: string;
  ruleRevision: number;
  reasonJson: string | null;
  violationsJson: string;
  shadowJson: string | null;
  /** The policy's whole input, so that the decision can be replayed. */
  inputJson: string;
}

/** Targets that served calls, and how. */
export interface CallTargetsTable extends Digested {
  providerId: string | null;
  modelId: string | null;
  providerKeyId: string | null;
  /** `logId` is empty, where the call's id belongs. */
  attemptsJson: string | null;
}

/** One row a call, which its decision shares; the views `calls` and `decisions` show it with all that it refers to. */
export interface LedgerTable extends CallColumns {
  /** 16 bytes, also of the decision. */
  id: Buffer;
  /** `CALL_STATES` has their names. */
  state: number;
  origin: number;
  /** Null: no decision is on record. */
  verdict: number | null;
  /** Null: no one served. */
  target: Generated<number | null>;
  requestId: Buffer;
  /** Milliseconds from the request's arrival to the call's end; null: not known. */
  tookMs: Generated<number | null>;
  /** `Settlement` says what stands in it; null: not known. */
  timesJson: Generated<string | null>;
  /** Begin of the window of the limits that its key shares. */
  sharedPeriodStartedAt: Generated<number | null>;
}

/** Columns that belong to one call alone. */
interface CallColumns extends Record<keyof StoredTokens, Generated<number>> {
  /** In the order of ids (src/domain/id.ts). */
  number: number;
  createdAt: number;
  clientRequestId: string | null;
  reservation: Generated<bigint>;
  /** Begin of the recurring window in which the call was opened and to which its cost belongs. */
  periodStartedAt: Generated<number | null>;
  /** Begin of the windows of the budgets of the key's owner, its project and its organization, in the same sense. */
  memberPeriodStartedAt: Generated<number | null>;
  projectPeriodStartedAt: Generated<number | null>;
  organizationPeriodStartedAt: Generated<number | null>;
  settledAt: Generated<number | null>;
  cost: Generated<bigint>;
  /** A price that it needed was not known: its cost leaves something out. */
  priceUnknown: Generated<Flag>;
  /** The parts of the cost, as decimal strings in USD. */
  costDetailsJson: Generated<string | null>;
  usageEstimated: Generated<Flag>;
  /** Served from the cache. */
  cached: Generated<Flag>;
  statusCode: Generated<number | null>;
  errorCode: Generated<string | null>;
}

/** A request that ended with an error before it was a call; its texts are cleaned, and bounded. */
export interface RefusedRequestsTable {
  id: string;
  clientRequestId: string | null;
  /** Null: no key was known. */
  organizationId: string | null;
  projectId: string | null;
  keyId: string | null;
  /** The owner of the key. */
  memberId: string | null;
  statusCode: number;
  errorCode: string | null;
  /** As the caller got it, without what it quoted. */
  message: string | null;
  /** More than the caller learned. */
  detail: string | null;
  /** `POST /v1/chat/completions` */
  endpoint: string;
  requestedModel: string | null;
  clientAddress: string | null;
  userAgent: string | null;
  /** Requests like it before that have no row. */
  unrecorded: number;
}

/** No call below this number is open. */
export interface LedgerMarkTable {
  openFrom: number;
}

/** A view: calls as readers want to see them. */
export interface CallsView
  extends CallColumns,
    Omit<CallOriginsTable, keyof Digested>,
    Omit<CallTargetsTable, keyof Digested> {
  id: string;
  decisionId: string;
  state: 'open' | 'settled' | 'denied' | 'recovered' | 'released';
  requestId: string;
  clientAddress: string | null;
}

export interface CallIndexTable {
  /** The number of the last row of the block. */
  last: number;
  /** The kind of cells (call-index.ts). */
  name: string;
  /** A typed array, little-endian, with an element for each row. */
  cells: Buffer;
}

/** A closed part of the call log; an entry of the audit log has all but the marks (call-seals.ts). */
export interface CallBlocksTable {
  /** Counts from 1. */
  number: number;
  /** The number up to which calls are in this block or in one before it. */
  last: number;
  calls: number;
  /** Over its calls and the block before it. */
  digest: string;
  /** Numbers of the calls up to `last` that are in no block yet, because they were open. */
  openJson: string;
  /** The number of each call and the begin of its digest, by which a fault is traced to a call; null: its calls were deleted. */
  marks: Buffer | null;
  /** Retention deletes its calls, or has done so. */
  forgotten: Generated<Flag>;
}

/** One row: the number of the last call of whose decision the reports of rules are counted (call-follower.ts). */
export interface ReportMarkTable {
  counted: number;
}

/** A view: their decisions. */
export interface DecisionsView extends Omit<CallVerdictsTable, keyof Digested | 'document' | 'clientAddress'> {
  number: number;
  id: string;
  organizationId: string;
  keyId: string;
  callId: string;
  createdAt: number;
  action: string;
  requestedModel: string;
  dataDigest: string;
}

/** Sums of an hour's calls that retention has deleted, told apart as in usage reports. */
export interface KeptUsageTable extends StoredTokens {
  /** Begin of the hour. */
  hour: number;
  organizationId: string;
  projectId: string;
  keyId: string;
  memberId: string;
  /** Empty: none. */
  modelId: string;
  /** Empty: none. */
  providerId: string;
  calls: number;
  errors: number;
  denied: number;
  limitRefusals: number;
  cacheHits: number;
  estimatedCalls: number;
  unknownPriceCalls: number;
  costHigh: bigint;
  costLow: bigint;
}

/** Documents that decisions saw. */
export interface DataDocumentsTable extends Interned {
  digest: string;
  /** The text, or its pieces (text-parts.ts). */
  text: string;
}
