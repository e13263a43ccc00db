import { type ApiKey, isCapped, refusal, runningPeriod } from '../domain/api-key.ts';
import { ApiError } from '../domain/errors.ts';
import { capAmount } from '../domain/money.ts';
import type { OrganizationProviders } from '../domain/provider.ts';
import { type Reservation, reserve, type SpendState, type WorstCase } from '../domain/reservation.ts';
import type { Database } from './database.ts';
import type { DecidedCall, DecisionRecord, DecisionRecorder } from './decisions.ts';
import { toApiKey } from './key-columns.ts';
import type { KeyCredential, KeyReads } from './key-credential.ts';
import { type LedgerStatements, prepareLedgerStatements } from './ledger-statements.ts';
import type { SqlValue } from './sql.ts';
import type { CallsTable } from './tables.ts';

/** What is known of a call before it is dispatched. */
export interface NewCall extends DecidedCall {
  readonly projectId: string;
  readonly memberId: string;
  readonly requestId: string;
  readonly clientRequestId: string | null;
  readonly clientAddress: string | null;
  readonly stream: boolean;
}

/**
 * What a call may cost at most, or why that cannot be told; asked for only when the key has a limit, inside the transaction that
 * holds it back, and perhaps twice.
 */
export type FindWorstCase = () => WorstCase | ApiError;

/** A call whose row is committed and open: made by `openCall` alone, and what `settleCall` settles. */
export interface OpenCall {
  readonly callId: string;
  readonly organizationId: string;
  readonly keyId: string;
  /** Held back while the call is open; undefined where no limit applies. */
  readonly reservation: Reservation | undefined;
  /** Begin of the recurring window to which its cost belongs; null when the key has none. */
  readonly periodStartedAt: number | null;
  /** The organization's rule revision, and what the organization had brought along, when the call was opened. */
  readonly ruleRevision: number;
  readonly providers: OrganizationProviders;
}

/** How an open call ended: dispatched, or `released` before that. Token counts as reported by the provider; costs in pico-dollars. */
export interface Settlement {
  readonly state: 'settled' | 'released';
  readonly cost: bigint;
  /** JSON: the parts of the cost, as decimal strings in USD. */
  readonly costDetailsJson: string | null;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly cachedTokens: number;
  readonly cacheWriteTokens: number;
  readonly usageEstimated: boolean;
  /** The mapping that answered; null when none did. */
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly providerKeyId: string | null;
  /** JSON: the attempts, as in `metadata.routing`. */
  readonly attemptsJson: string | null;
  /** Status answered to the caller. */
  readonly statusCode: number;
  readonly errorCode: string | null;
}

/** How a call ended that was never open: denied by policy, or served from the cache. */
export interface FinishedCall {
  readonly state: 'denied' | 'settled';
  readonly cached: boolean;
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly statusCode: number;
  readonly errorCode: string | null;
}

/** The ledger's operations. Each is synchronous and runs in a transaction of the writer. */
export interface Ledger {
  /**
   * Opens a call and holds back what it may cost. An error is the 401 or 429 that says why the key may not be used for it (any
   * more); then the call's row is a finished one, `released`.
   */
  openCall(call: NewCall, decision: DecisionRecord, findWorstCase: FindWorstCase, now: number): OpenCall | ApiError;
  /** False when the call is not open (any more): then nothing was booked. */
  settleCall(call: OpenCall, settlement: Settlement, now: number): boolean;
  recordFinishedCall(call: NewCall, decision: DecisionRecord, outcome: FinishedCall, now: number): void;
}

const flag = (value: boolean): number => (value ? 1 : 0);

const callValues = (call: NewCall, decisionId: string, now: number): Record<string, SqlValue> => ({
  ...call,
  stream: flag(call.stream),
  decisionId,
  now,
});

/** What a call is opened by. */
type OpeningKey = SpendState & Pick<KeyCredential, 'ruleRevision'>;

/** What the call holds back of the key's limits; undefined for a key without one. */
function hold(key: SpendState, findWorstCase: FindWorstCase, now: number): Reservation | ApiError | undefined {
  const refused = refusal(key, now);
  if (refused !== undefined) return refused;
  if (!isCapped(key)) return undefined;
  const worstCase = findWorstCase();
  return worstCase instanceof ApiError ? worstCase : reserve(key, worstCase, now);
}

/** Begin of the window to which the call belongs, started now if none runs; null for a key without a recurring limit. */
function enterPeriod(statements: LedgerStatements, key: ApiKey, call: NewCall, now: number): number | null {
  if (key.periodUsageLimit === null) return null;
  const period = runningPeriod(key, now);
  if (period !== undefined) return period.startedAt;
  const { keyId, organizationId } = call;
  // An earlier window's open calls must not be taken for this one's, whatever was changed within a millisecond.
  const latest = statements.latestOpenPeriod.get({ keyId, organizationId })?.started_at ?? null;
  const startedAt = latest === null ? now : Math.max(now, latest + 1);
  statements.startPeriod.run({ keyId, organizationId, startedAt });
  return startedAt;
}

export interface LedgerDeps {
  readonly db: Database;
  readonly decisions: DecisionRecorder;
  /** Spares the look at a key that cannot have changed since it authenticated the caller. */
  readonly keys: Pick<KeyReads, 'unchanged'>;
  /** What an organization has brought along as it is now. */
  readonly organizationProviders: (organizationId: string) => OrganizationProviders;
}

export function createLedger({ db, decisions, keys, organizationProviders }: LedgerDeps): Ledger {
  const statements = prepareLedgerStatements(db);

  const readKey = ({ keyId, organizationId }: NewCall): OpeningKey => {
    const row = statements.selectKey.get({ keyId, organizationId });
    if (row === undefined) throw new Error(`The organization has no key ${keyId}.`);
    return { ...toApiKey(row), ruleRevision: row.rule_revision };
  };

  const recordFinishedCall = (
    call: NewCall,
    decision: DecisionRecord,
    outcome: Omit<FinishedCall, 'state'> & Pick<CallsTable, 'state'>,
    now: number,
  ): void => {
    const values = { ...callValues(call, decision.id, now), ...outcome, cached: flag(outcome.cached) };
    statements.insertFinishedCall.run(values);
    decisions.insert(call, decision, now);
    statements.touchKey.run({ keyId: call.keyId, organizationId: call.organizationId, now });
  };

  return {
    openCall(call, decision, findWorstCase, now) {
      const key = keys.unchanged(call.keyId) ?? readKey(call);
      const reservation = hold(key, findWorstCase, now);
      if (reservation instanceof ApiError) {
        recordFinishedCall(call, decision, { ...NEVER_OPEN, ...endOf(reservation) }, now);
        return reservation;
      }
      const periodStartedAt = enterPeriod(statements, key, call, now);
      const held = reservation?.amount ?? 0n;
      const values = { ...callValues(call, decision.id, now), periodStartedAt, reservation: held };
      if (held > 0n) statements.holdBack.run(values);
      statements.insertOpenCall.run(values);
      decisions.insert(call, decision, now);
      const { organizationId, keyId } = call;
      const { ruleRevision } = key;
      const providers = organizationProviders(organizationId);
      return { callId: call.id, organizationId, keyId, reservation, periodStartedAt, ruleRevision, providers };
    },

    settleCall({ callId, organizationId, keyId, periodStartedAt, reservation }, settlement, now) {
      const values = {
        ...settlement,
        callId,
        organizationId,
        keyId,
        periodStartedAt,
        cost: capAmount(settlement.cost),
        reservation: reservation?.amount ?? 0n,
        usageEstimated: flag(settlement.usageEstimated),
        now,
      };
      if (statements.settleOpenCall.run(values) !== 1) return false;
      statements.bookCost.run(values);
      return true;
    },

    recordFinishedCall,
  };
}

const NEVER_OPEN = { state: 'released', cached: false, providerId: null, modelId: null } as const;

const endOf = ({ status, code }: ApiError): Pick<FinishedCall, 'statusCode' | 'errorCode'> => ({
  statusCode: status,
  errorCode: code,
});
