import { type ApiKey, refusal, runningPeriod } from '../domain/api-key.ts';
import type { ApiError } from '../domain/errors.ts';
import { capAmount } from '../domain/money.ts';
import type { Database } from './database.ts';
import type { DecidedCall, DecisionRecord, DecisionRecorder } from './decisions.ts';
import { toApiKey } from './key-columns.ts';
import type { KeyCredential, KeyReads } from './key-credential.ts';
import { type LedgerStatements, prepareLedgerStatements } from './ledger-statements.ts';
import type { SqlValue } from './sql.ts';

/** What is known of a call before it is dispatched. */
export interface NewCall extends DecidedCall {
  readonly projectId: string;
  readonly memberId: string;
  readonly requestId: string;
  readonly clientRequestId: string | null;
  readonly clientAddress: string | null;
  readonly stream: boolean;
  /** The worst-case cost held back while the call is open, in pico-dollars; 0 when no cap applies. */
  readonly reservation: bigint;
}

/** A call whose row is committed and open: made by `openCall` alone, and what `settleCall` settles. */
export interface OpenCall {
  readonly callId: string;
  readonly organizationId: string;
  readonly keyId: string;
  readonly reservation: bigint;
  /** Begin of the recurring window to which its cost belongs; null when the key has none. */
  readonly periodStartedAt: number | null;
  /** The organization's rule revision when the call was opened. */
  readonly ruleRevision: number;
}

/** How a call ended. Token counts as reported by the provider; costs in pico-dollars. */
export interface Settlement {
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

/** How a call ended that was never dispatched: denied by policy, served from the cache, or released for want of a known price. */
export interface FinishedCall {
  readonly state: 'denied' | 'settled' | 'released';
  readonly cached: boolean;
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly statusCode: number;
  readonly errorCode: string | null;
}

/** The ledger's operations. Each is synchronous and runs in a transaction of the writer. */
export interface Ledger {
  /** An error is the 401 that says why the key may no longer be used; then nothing was written. */
  openCall(call: NewCall, decision: DecisionRecord, now: number): OpenCall | ApiError;
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

function readKey(statements: LedgerStatements, call: NewCall): ApiKey & Pick<KeyCredential, 'ruleRevision'> {
  const row = statements.selectKey.get({ keyId: call.keyId, organizationId: call.organizationId });
  if (row === undefined) throw new Error(`The organization has no key ${call.keyId}.`);
  return { ...toApiKey(row), ruleRevision: row.rule_revision };
}

/** Begin of the window to which the call belongs, started now if none runs; null for a key without a recurring limit. */
function enterPeriod(statements: LedgerStatements, key: ApiKey, call: NewCall, now: number): number | null {
  if (key.periodUsageLimit === null) return null;
  const period = runningPeriod(key, now);
  if (period !== undefined) return period.startedAt;
  statements.startPeriod.run({ keyId: call.keyId, organizationId: call.organizationId, now });
  return now;
}

/** @param keys spares the look at a key that cannot have changed since it authenticated the caller */
export function createLedger(db: Database, decisions: DecisionRecorder, keys: Pick<KeyReads, 'unchanged'>): Ledger {
  const statements = prepareLedgerStatements(db);

  return {
    openCall(call, decision, now) {
      const key = keys.unchanged(call.keyId) ?? readKey(statements, call);
      const refused = refusal(key, now);
      if (refused !== undefined) return refused;
      const periodStartedAt = enterPeriod(statements, key, call, now);
      const values = { ...callValues(call, decision.id, now), periodStartedAt };
      if (call.reservation > 0n) statements.holdBack.run(values);
      statements.insertOpenCall.run(values);
      decisions.insert(call, decision, now);
      const { organizationId, keyId, reservation } = call;
      return { callId: call.id, organizationId, keyId, reservation, periodStartedAt, ruleRevision: key.ruleRevision };
    },

    settleCall(call, settlement, now) {
      const cost = capAmount(settlement.cost);
      const usageEstimated = flag(settlement.usageEstimated);
      const values = { ...call, ...settlement, cost, usageEstimated, now };
      if (statements.settleOpenCall.run(values) !== 1) return false;
      statements.bookCost.run(values);
      return true;
    },

    recordFinishedCall(call, decision, outcome, now) {
      statements.insertFinishedCall.run({
        ...callValues(call, decision.id, now),
        ...outcome,
        cached: flag(outcome.cached),
      });
      decisions.insert(call, decision, now);
      statements.touchKey.run({ keyId: call.keyId, organizationId: call.organizationId, now });
    },
  };
}
