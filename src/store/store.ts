import { ApiError } from '../domain/errors.ts';
import type { Bounds } from '../domain/limits.ts';
import type { OrganizationProviders } from '../domain/provider.ts';
import type { Clock } from '../domain/time.ts';
import { type Database, type Durability, openDatabase } from './db/database.ts';
import { Freshness } from './db/freshness.ts';
import { classify } from './db/sqlite-file.ts';
import {
  type Candidate,
  createLedger,
  type FinishedCall,
  type NewCall,
  type OpenCall,
  recoverOpenCalls,
  type Settlement,
} from './ledger/ledger.ts';
import { createCallReferences, type DecisionRecord } from './ledger/references.ts';
import { GroupWriter, SettlementRetries } from './ledger/writer.ts';
import { createOrganizationProviders } from './providers/organization-providers.ts';
import { type CompiledRules, createRuleRevision, prepareSubjectRules } from './rules/rules.ts';
import { createBudgetReads, createKeyReads, type KeyCredential } from './tenants/key-credential.ts';

export interface StoreOptions {
  /** Path of the SQLite file. */
  path: string;
  clock: Clock;
  durability?: Durability;
  busyTimeoutMs?: number;
  /** Only `serve` creates a database or migrates one. */
  create?: boolean;
  /** Key of the audit chain: without it what is audited cannot be written. */
  auditKey?: Buffer;
  /** Writes that may wait; further ones are refused. */
  queueCapacity?: number;
  /** Told how long each transaction of the writer took, in milliseconds, whether it was committed or undone. */
  onCommit?: (durationMs: number) => void;
  /** Told of a call that cost more than was held back for it: its provider reported more than the bound. */
  onOverReservation?: (callId: string, cost: bigint, reserved: bigint) => void;
}

/**
 * The database as the core sees it: each function is one atomic operation. All reject with `StoreUnavailable` (503) when the
 * database cannot do its work; what was resolved is committed.
 */
export interface Store {
  /** Undefined: no key has this secret. Deleted, disabled and expired keys are found; `refusal` judges them. */
  findKeyByHash(secretHash: string): Promise<KeyCredential | undefined>;
  /** The key of this id, as it is now; undefined when it or its project is gone. */
  findKeyById(keyId: string): Promise<KeyCredential | undefined>;
  /** Compiled rules of each subject; a subject that the organization does not have is an error, which denies. */
  subjectRules(organizationId: string, subjectIds: readonly string[]): Promise<Map<string, CompiledRules>>;
  /** The organization's rule revision as it is now, whichever process wrote last. */
  ruleRevision(organizationId: string): Promise<number>;
  /** The organization's own providers as they are now, whichever process wrote last; the same object while nothing changes. */
  organizationProviders(organizationId: string): Promise<OrganizationProviders>;
  /**
   * Commits the call, its decision and what is held back for it before dispatch; throws the 401 or 429 of a key that has no room
   * for it, or was spent or withdrawn meanwhile.
   * @param candidates who might serve it, for the row of a call that is refused
   */
  openCall(
    call: NewCall,
    decision: DecisionRecord,
    bounds: Bounds,
    candidates?: readonly Candidate[],
  ): Promise<OpenCall>;
  /**
   * Books the end of an open call, once; false when it was settled or recovered before, and nothing was booked. What the database
   * cannot take is tried again for about five seconds before this rejects, and afterwards for as long as the store is open.
   */
  settleCall(call: OpenCall, settlement: Settlement): Promise<boolean>;
  /**
   * Before another attempt of an open call: holds `charged` back for those that failed, besides the reservation. False: the limits
   * leave no room for it. Rejects with an ApiError 401 when the key may not be used any more.
   */
  continueCall(call: OpenCall, charged: bigint): Promise<boolean>;
  /** One finished row for a denial or a cache hit, which costs nothing. */
  recordFinishedCall(call: NewCall, decision: DecisionRecord, outcome: FinishedCall): Promise<void>;
  /** Settles what a crash left open; returns how many calls. Only the serving process may do so, before it starts to listen. */
  recoverOpenCalls(): Promise<number>;
  /** Runs a query function. It must not wait. */
  read<T>(query: (db: Database) => T): Promise<T>;
  /** Runs query functions in one transaction of the writer. They must not wait, and may run twice. */
  write<T>(operation: (db: Database, now: number) => T): Promise<T>;
  /** Writes that wait for the next transaction. */
  waitingWrites(): number;
  /** Commits what waits, then closes the file. */
  close(): void;
}

const ignored = (): void => undefined;

/** Opens the store; throws when the database is missing (without `create`) or of another schema version. */
export function createStore(options: StoreOptions): Store {
  const { path, clock, queueCapacity, onCommit = ignored, onOverReservation, ...databaseOptions } = options;
  const db = openDatabase(path, databaseOptions);
  const freshness = new Freshness(db.connection);
  const references = createCallReferences(db);
  const writer = new GroupWriter((work) => {
    const startedAt = performance.now();
    let committed = false;
    try {
      const result = db.transaction(() => freshness.during(work));
      committed = true;
      return result;
    } finally {
      references.ended(committed);
      onCommit(performance.now() - startedAt);
    }
  }, queueCapacity);
  const organizationProviders = createOrganizationProviders(db, freshness);
  const budgets = createBudgetReads(db, freshness);
  const keys = createKeyReads(db, freshness, budgets);
  const subjectRules = prepareSubjectRules(db);
  const ruleRevision = createRuleRevision(db, freshness);
  const ledger = createLedger({ db, references, keys, budgets, organizationProviders });

  const read = async <T>(query: (db: Database) => T): Promise<T> => {
    try {
      return query(db);
    } catch (error) {
      throw classify(error);
    }
  };
  const book = <T>(operation: (now: number) => T): Promise<T> => writer.enqueue(() => operation(clock.now()));
  const write = <T>(operation: (db: Database, now: number) => T): Promise<T> =>
    book((now) => {
      freshness.changed();
      return operation(db, now);
    });

  const settlements = new SettlementRetries();
  async function settleCall(call: OpenCall, settlement: Settlement): Promise<boolean> {
    const booked = await book((now) => ledger.settleCall(call, settlement, now));
    const { callId, reservation } = call;
    if (booked && reservation !== undefined && settlement.cost > call.held) {
      onOverReservation?.(callId, settlement.cost, call.held);
    }
    return booked;
  }

  async function continueCall(call: OpenCall, charged: bigint): Promise<boolean> {
    const held = await book((now) => ledger.continueCall(call, charged, now));
    if (held instanceof ApiError) throw held;
    if (held === undefined) return false;
    call.held = held;
    return true;
  }

  return {
    findKeyByHash: (secretHash) => read(() => keys.find(secretHash)),
    findKeyById: (keyId) => read(() => keys.byId(keyId)),
    subjectRules: (organizationId, subjectIds) => read(() => subjectRules(organizationId, subjectIds)),
    ruleRevision: (organizationId) => read(() => ruleRevision(organizationId)),
    organizationProviders: (organizationId) => read(() => organizationProviders(organizationId)),
    openCall: async (call, decision, bounds, candidates = []) => {
      const opened = await book((now) => ledger.openCall(call, decision, bounds, candidates, now));
      if (opened instanceof ApiError) throw opened;
      return opened;
    },
    settleCall: (call, settlement) => settlements.run(() => settleCall(call, settlement)),
    continueCall,
    recordFinishedCall: (call, decision, outcome) =>
      book((now) => ledger.recordFinishedCall(call, decision, outcome, now)),
    recoverOpenCalls: () => write(recoverOpenCalls),
    read,
    write,
    waitingWrites: () => writer.waiting,
    close: () => {
      writer.flush();
      settlements.close();
      writer.flush();
      db.close();
    },
  };
}

/** Anyone may ask: more often than this, they get the last answer. */
const VALID_FOR_MS = 1000;

/** Whether a call could be recorded now: true, unless the database does not take a write (disk full, read-only, locked). */
export type CanRecord = () => Promise<boolean>;

/** Tries a write that changes nothing, at most once a second. */
export function createRecordingCheck(store: Pick<Store, 'write'>, clock: Clock): CanRecord {
  let checkedAt = Number.NEGATIVE_INFINITY;
  let answer = Promise.resolve(true);
  return () => {
    if (clock.now() - checkedAt < VALID_FOR_MS) return answer;
    checkedAt = clock.now();
    // SQLite writes its first page for this, even where the number stays the same.
    answer = store
      .write((db) => db.connection.pragma('user_version = 0'))
      .then(
        () => true,
        () => false,
      );
    return answer;
  };
}
