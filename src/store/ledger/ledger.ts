import { sql } from 'kysely';
import { type ApiKey, refusal } from '../../domain/api-key.ts';
import { ApiError } from '../../domain/errors.ts';
import { bytesOfId, dayOfNumber, earliestNumber } from '../../domain/id.ts';
import {
  type Bounds,
  type Budget,
  budgetRefusal,
  capAmount,
  isLimited,
  type Reservation,
  reserve,
  runningPeriod,
  type SpendLimits,
  type SpendState,
} from '../../domain/limits.ts';
import type { Mapping } from '../../domain/model.ts';
import type { OrganizationProviders } from '../../domain/provider.ts';
import { STORED_TOKENS, type StoredTokens } from '../../domain/usage.ts';
import type { Database } from '../db/database.ts';
import { build, toFlag } from '../db/sql.ts';
import { type BudgetReads, invalidKey, type KeyCredential, type KeyReads, usable } from '../tenants/key-credential.ts';
import type { CallOrigin, CallReferences, CallTarget, DecisionRecord } from './references.ts';
import {
  budgetValues,
  CALL_STATES,
  type CallWindows,
  type LedgerStatements,
  prepareLedgerStatements,
  windowValues,
} from './statements.ts';

/** A call before it is dispatched. Its decision has the same id, with another prefix. */
export interface NewCall extends CallOrigin {
  readonly id: string;
  readonly requestId: string;
  readonly clientRequestId: string | null;
  readonly clientAddress: string | null;
}

/** A call whose row is committed and open: made by `openCall` alone, and what `settleCall` settles. */
export interface OpenCall {
  readonly callId: string;
  /** Number of the call's row, and of its origin's row. */
  readonly number: number;
  readonly origin: number;
  readonly organizationId: string;
  readonly projectId: string;
  readonly memberId: string;
  readonly keyId: string;
  /** Maximum cost of one attempt; undefined if no limit applies. */
  readonly reservation: Reservation | undefined;
  /** The key whose limits its key shares: the call is booked there as well. */
  readonly sharesLimitsOf: string | null;
  /** Held back while the call is open, in pico-dollars: the reservation, and what attempts that failed have cost. */
  held: bigint;
  readonly windows: CallWindows;
  /** The organization's rule revision, and its own providers, when the call was opened. */
  readonly ruleRevision: number;
  readonly providers: OrganizationProviders;
}

/** End of an open call: dispatched, or `released` before that. Token counts as reported by the provider; costs in pico-dollars. */
export interface Settlement extends CallTarget, StoredTokens {
  readonly state: 'settled' | 'released';
  readonly cost: bigint;
  /** A price that it needed is not known: `cost` leaves something out. */
  readonly priceUnknown: boolean;
  /** JSON: the parts of the cost, as decimal strings in USD. */
  readonly costDetailsJson: string | null;
  readonly usageEstimated: boolean;
  /** Status answered to the caller. */
  readonly statusCode: number;
  readonly errorCode: string | null;
  /** Milliseconds from the request's arrival to here; null: not measured. */
  readonly tookMs: number | null;
  /** JSON, whole milliseconds: for how long the body was waited for; when the first token came; of each attempt when it began, and how long it took. */
  readonly timesJson: string | null;
}

/** End of a call that was never open: denied by policy, or served from the cache. */
export interface FinishedCall {
  readonly state: 'denied' | 'settled';
  readonly cached: boolean;
  readonly providerId: string | null;
  readonly modelId: string | null;
  readonly statusCode: number;
  readonly errorCode: string | null;
  /** Milliseconds from the request's arrival to here; null: not measured. */
  readonly tookMs: number | null;
  /** As of a settlement. */
  readonly timesJson: string | null;
}

/** A mapping that might have served a call. */
export type Candidate = Pick<Mapping, 'providerId' | 'modelId'>;

/** The ledger's operations. Each is synchronous and runs in a transaction of the writer. */
interface Ledger {
  /**
   * Opens a call and holds back what it may cost. An error is the 401 or 429 that says why the key may not be used for it (any
   * more); then the call's row is a finished one, `released`, of the model and the provider that all candidates have in common.
   */
  openCall(
    call: NewCall,
    decision: DecisionRecord,
    bounds: Bounds,
    candidates: readonly Candidate[],
    now: number,
  ): OpenCall | ApiError;
  /**
   * Returns the amount held back for a call whose failed attempts have cost `charged`, when another one may follow. Undefined:
   * there is not enough room. An error is the 401 that explains why the key can no longer be used.
   */
  continueCall(call: OpenCall, charged: bigint, now: number): bigint | undefined | ApiError;
  /** False when the call is not open (any more): then nothing was booked. */
  settleCall(call: OpenCall, settlement: Settlement, now: number): boolean;
  recordFinishedCall(call: NewCall, decision: DecisionRecord, outcome: FinishedCall, now: number): void;
}

/** The data of a key that opening a call needs. */
type OpeningKey = ApiKey & SpendState & Pick<KeyCredential, 'ruleRevision' | 'budgets' | 'sharesLimitsOf'>;

/** Amounts that the call holds back of its key's limits and of the budgets; undefined if there are no limits. */
function hold(key: OpeningKey, bounds: Bounds, now: number): Reservation | ApiError | undefined {
  const { budgets } = key;
  const refused = refusal(key, now) ?? budgetRefusal(budgets, now);
  if (refused !== undefined) return refused;
  return isLimited(key) ? reserve(key, budgets, bounds, now) : undefined;
}

const NO_WINDOWS: CallWindows = {
  periodStartedAt: null,
  memberPeriodStartedAt: null,
  projectPeriodStartedAt: null,
  organizationPeriodStartedAt: null,
  sharedPeriodStartedAt: null,
};

const WINDOW_OF = {
  member: 'memberPeriodStartedAt',
  project: 'projectPeriodStartedAt',
  organization: 'organizationPeriodStartedAt',
  shared: 'sharedPeriodStartedAt',
} as const satisfies Record<Budget['scope'], keyof CallWindows>;

/** The windows to which the call belongs; those that do not run are started now. */
function enterWindows(
  { latestOpenPeriod, startPeriod, startBudgetPeriod }: LedgerStatements,
  key: OpeningKey,
  { keyId, organizationId }: NewCall,
  now: number,
): CallWindows {
  if (key.periodUsageLimit === null && key.budgets.length === 0) return NO_WINDOWS;
  const enter = (limits: SpendLimits, subjectId: string, start: LedgerStatements['startPeriod']): number | null => {
    if (limits.periodUsageLimit === null) return null;
    const period = runningPeriod(limits, now);
    if (period !== undefined) return period.startedAt;
    // An earlier window's open calls must not be taken for this one's, whatever was changed within a millisecond.
    const latest = latestOpenPeriod.get(subjectId, organizationId)?.startedAt ?? null;
    const startedAt = latest === null ? now : Math.max(now, latest + 1);
    start.run(startedAt, subjectId, organizationId);
    return startedAt;
  };
  const windows = { ...NO_WINDOWS, periodStartedAt: enter(key, keyId, startPeriod) };
  for (const budget of key.budgets) {
    const start = budget.scope === 'shared' ? startPeriod : startBudgetPeriod;
    windows[WINDOW_OF[budget.scope]] = enter(budget, budget.subjectId, start);
  }
  // By it `latestOpenPeriod` finds the call. A window that is not the key's own has no effect there.
  windows.periodStartedAt ??= windows.sharedPeriodStartedAt;
  return windows;
}

interface LedgerDeps {
  readonly db: Database;
  readonly references: CallReferences;
  /** Spares the look at a key that cannot have changed since it authenticated the caller. */
  readonly keys: Pick<KeyReads, 'unchanged' | 'byId'>;
  readonly budgets: BudgetReads;
  /** An organization's own providers as they are now. */
  readonly organizationProviders: (organizationId: string) => OrganizationProviders;
}

/** So many calls are recorded between two looks below which number none is open (any more). */
const LOOK_EVERY = 1000;

export function createLedger({ db, references, keys, budgets, organizationProviders }: LedgerDeps): Ledger {
  const statements = prepareLedgerStatements(db);
  let last: number | undefined;
  let recorded = 0;

  const readKey = (call: NewCall): OpeningKey => {
    const { keyId, organizationId } = call;
    const row = statements.selectKey.get(keyId, organizationId);
    if (row === undefined) throw new Error(`The organization has no key ${keyId}.`);
    return { ...row, budgets: budgets.of(call, row.sharesLimitsOf) };
  };

  /** The number of the next row. It is the last one, whatever the clock does: so open calls can be found from a number on. */
  const nextNumber = (call: NewCall): number => {
    last ??= statements.lastNumber.get()?.number ?? 0;
    last = Math.max(earliestNumber(call.id), last + 1);
    recorded += 1;
    if (recorded % LOOK_EVERY === 0) statements.moveMark.run();
    return last;
  };

  const recordFinishedCall = (
    call: NewCall,
    decision: DecisionRecord,
    outcome: Omit<FinishedCall, 'state'> & { readonly state: keyof typeof CALL_STATES },
    now: number,
  ): void => {
    const number = nextNumber(call);
    const day = dayOfNumber(number);
    const { providerId, modelId } = outcome;
    statements.insertFinishedCall.run(
      number,
      bytesOfId(call.id),
      references.origin(call, day),
      references.verdict({ decision, clientAddress: call.clientAddress }, day),
      now,
      bytesOfId(call.requestId),
      call.clientRequestId,
      CALL_STATES[outcome.state],
      toFlag(outcome.cached),
      references.target({ providerId, modelId, providerKeyId: null, attemptsJson: null }, call.id, day),
      outcome.statusCode,
      outcome.errorCode,
      outcome.tookMs,
      outcome.timesJson,
    );
    statements.touchKey.run(now, call.keyId, call.organizationId);
  };

  return {
    openCall(call, decision, bounds, candidates, now) {
      const key = keys.unchanged(call.keyId) ?? readKey(call);
      const reservation = hold(key, bounds, now);
      if (reservation instanceof ApiError) {
        recordFinishedCall(call, decision, neverOpened(candidates, reservation), now);
        return reservation;
      }
      const windows = enterWindows(statements, key, call, now);
      const held = reservation?.amount ?? 0n;
      const { sharesLimitsOf } = key;
      const { organizationId, projectId, memberId, keyId } = call;
      if (held > 0n) {
        statements.holdBack.run(held, windows.periodStartedAt, keyId, organizationId);
        if (key.budgets.length > 0) statements.holdBackBudgets.run(held, ...budgetValues(call, windows));
        if (sharesLimitsOf !== null) {
          statements.holdBack.run(held, windows.sharedPeriodStartedAt, sharesLimitsOf, organizationId);
        }
      }
      const number = nextNumber(call);
      const day = dayOfNumber(number);
      const origin = references.origin(call, day);
      const verdict = references.verdict({ decision, clientAddress: call.clientAddress }, day);
      const own = [bytesOfId(call.id), origin, verdict, now, bytesOfId(call.requestId), call.clientRequestId] as const;
      if (reservation === undefined) statements.insertOpenCall.run(number, ...own);
      else {
        statements.insertLimitedCall.run(number, ...own, held, ...windowValues(windows));
      }
      const { ruleRevision } = key;
      const providers = organizationProviders(organizationId);
      return {
        callId: call.id,
        number,
        origin,
        organizationId,
        projectId,
        memberId,
        keyId,
        reservation,
        held,
        windows,
        ruleRevision,
        providers,
        sharesLimitsOf,
      };
    },

    continueCall(call, charged, now) {
      const { number, origin, organizationId, keyId, windows, reservation, held, sharesLimitsOf } = call;
      const found = keys.byId(keyId);
      const key = found === undefined ? invalidKey() : usable(found, now);
      if (key instanceof ApiError) return key;
      const more = reservation === undefined ? 0n : reservation.amount + charged - held;
      if (more <= 0n) return held;
      const bounds: Bounds = { least: more, within: () => ({ amount: more, maxOutputTokens: null }) };
      if (!isLimited(key)) return held;
      if (reserve(key, key.budgets, bounds, now) instanceof ApiError) return undefined;
      if (statements.reserveMore.run(more, number, origin) !== 1) return undefined;
      statements.holdBack.run(more, windows.periodStartedAt, keyId, organizationId);
      statements.holdBackBudgets.run(more, ...budgetValues(call, windows));
      if (sharesLimitsOf !== null) {
        statements.holdBack.run(more, windows.sharedPeriodStartedAt, sharesLimitsOf, organizationId);
      }
      return held + more;
    },

    settleCall(call, settlement, now) {
      const { callId, number, origin, organizationId, keyId, windows, reservation, held, sharesLimitsOf } = call;
      const cost = capAmount(settlement.cost);
      const settled = statements.settleOpenCall.run(
        CALL_STATES[settlement.state],
        now,
        cost,
        toFlag(settlement.priceUnknown),
        settlement.costDetailsJson,
        ...STORED_TOKENS.map((name) => settlement[name]),
        toFlag(settlement.usageEstimated),
        references.target(settlement, callId, dayOfNumber(number)),
        settlement.statusCode,
        settlement.errorCode,
        settlement.tookMs,
        settlement.timesJson,
        number,
        origin,
      );
      if (settled !== 1) return false;
      if (reservation === undefined) statements.bookUnlimited.run(cost, now, keyId, organizationId);
      else statements.bookCost.run(cost, held, windows.periodStartedAt, now, keyId, organizationId);
      if (budgets.mayBind(keyId)) statements.bookBudgets.run(cost, held, ...budgetValues(call, windows));
      if (sharesLimitsOf !== null) {
        statements.bookShared.run(cost, held, windows.sharedPeriodStartedAt, sharesLimitsOf, organizationId);
      }
      return true;
    },

    recordFinishedCall,
  };
}

function neverOpened([first, ...others]: readonly Candidate[], { status, code }: ApiError) {
  const common = (of: keyof Candidate): string | null =>
    first !== undefined && others.every((other) => other[of] === first[of]) ? first[of] : null;
  return {
    state: 'released',
    cached: false,
    providerId: common('providerId'),
    modelId: common('modelId'),
    statusCode: status,
    errorCode: code,
    tookMs: null,
    timesJson: null,
  } as const;
}

/**
 * Settles, at start, what a crash left open: every open call counts as dispatched, is booked at its full reservation (none:
 * nothing) and marked `recovered` (src/admin/README.md, "after a crash"). Returns how many there were.
 */
export function recoverOpenCalls(db: Database, now: number): number {
  const { bookCost, bookBudgets, bookShared, moveMark } = prepareLedgerStatements(db);
  const openFrom = build.selectFrom('ledger_mark').select('openFrom');
  return db.transaction(() => {
    const calls = db.all(
      build
        .selectFrom('calls')
        .innerJoin('ledger', 'ledger.number', 'calls.number')
        .innerJoin('keys', 'keys.id', 'calls.keyId')
        .selectAll('calls')
        .select(['ledger.sharedPeriodStartedAt', 'keys.sharesLimitsOf'])
        .where('calls.number', '>=', openFrom)
        .where('calls.state', '=', 'open'),
    );
    db.run(
      build
        .updateTable('ledger')
        .set((row) => ({ state: CALL_STATES.recovered, settledAt: now, cost: row.ref('reservation') }))
        .where('number', '>=', openFrom)
        .where('state', '=', sql.lit(CALL_STATES.open)),
    );
    for (const call of calls) {
      const { reservation, periodStartedAt, keyId, organizationId } = call;
      bookCost.run(reservation, reservation, periodStartedAt, now, keyId, organizationId);
      bookBudgets.run(reservation, reservation, ...budgetValues(call, call));
      const { sharesLimitsOf, sharedPeriodStartedAt } = call;
      if (sharesLimitsOf !== null) {
        bookShared.run(reservation, reservation, sharedPeriodStartedAt, sharesLimitsOf, organizationId);
      }
    }
    moveMark.run();
    return calls.length;
  });
}
