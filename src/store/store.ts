import { ApiError } from '../domain/errors.ts';
import type { Bounds } from '../domain/limits.ts';
import type { OrganizationProviders } from '../domain/provider.ts';
import type { Clock } from '../domain/time.ts';
import { type Checkpointer, type Database, type Durability, Freshness, openDatabase } from './db/database.ts';
import { classify, isBusy, StoreUnavailable } from './db/sqlite-file.ts';
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
  /** Writes checkpoints elsewhere. Default: the writer's connection writes them. */
  checkpointer?: Pick<Checkpointer, 'committed'>;
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
  const {
    path,
    clock,
    queueCapacity,
    onCommit = ignored,
    checkpointer,
    onOverReservation,
    ...databaseOptions
  } = options;
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
      checkpointer?.committed();
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

interface QueuedOperation {
  /** Runs the operation in the open transaction; what it returns tells its caller, once the transaction is committed. */
  run(): () => void;
  reject(error: unknown): void;
}

/**
 * The one ordered writer. Operations of one turn of the event loop share a transaction; none is acknowledged before its
 * transaction is committed. Operations are synchronous, and may run a second time after their group was rolled back, so they
 * must have no effect but on the database.
 */
export class GroupWriter {
  readonly #transaction: Database['transaction'];
  readonly #capacity: number;
  #queue: QueuedOperation[] = [];

  /** @param capacity operations that may wait; further ones are refused with `StoreUnavailable`. */
  constructor(transaction: Database['transaction'], capacity = 10_000) {
    this.#transaction = transaction;
    this.#capacity = capacity;
  }

  /** Operations that wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Resolves with the operation's result after it is committed; rejects with what it threw, or with `StoreUnavailable`. */
  enqueue<T>(operation: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#queue.length >= this.#capacity) {
        reject(new StoreUnavailable(new Error('The queue of writes is full.')));
        return;
      }
      if (this.#queue.length === 0) setImmediate(() => this.flush());
      this.#queue.push({
        run: () => {
          const result = operation();
          return () => resolve(result);
        },
        reject,
      });
    });
  }

  /** Runs and commits everything that waits, now. */
  flush(): void {
    const group = this.#queue;
    this.#queue = [];
    if (group.length === 0) return;
    try {
      this.#commit(group);
    } catch (error) {
      this.#afterFailure(group, error);
    }
  }

  #commit(group: readonly QueuedOperation[]): void {
    const acknowledgements = this.#transaction(() => group.map((operation) => operation.run()));
    for (const acknowledge of acknowledgements) acknowledge();
  }

  /** A lock held by another process fails the whole group at once; any other fault is kept to the operation that caused it. */
  #afterFailure(group: readonly QueuedOperation[], error: unknown): void {
    if (group.length === 1 || isBusy(error)) {
      for (const operation of group) operation.reject(classify(error));
      return;
    }
    for (const operation of group) {
      try {
        this.#commit([operation]);
      } catch (cause) {
        operation.reject(classify(cause));
      }
    }
  }
}

/** After so many tries, about five seconds, the caller gets the error; the settlement is still kept. */
const TRIES_FOR_CALLER = 10;
const QUICK_WAIT_MS = 300;
const SLOW_WAIT_MS = 5000;

interface KeptSettlement {
  readonly settle: () => Promise<boolean>;
  readonly resolve: (booked: boolean) => void;
  readonly reject: (error: unknown) => void;
  tries: number;
}

/**
 * Settlements that the database could not take, tried again for as long as the process lives: what a call cost is known only
 * here, and what is held back for it stays so until it is booked. Trying twice is safe: a row is settled only while it is open.
 */
export class SettlementRetries {
  readonly #capacity: number;
  readonly #kept = new Set<KeptSettlement>();
  #timer: NodeJS.Timeout | undefined;
  #isQuick = false;
  #closed = false;

  /** @param capacity settlements that are kept; further ones are left to the recovery at the next start. */
  constructor(capacity = 5000) {
    this.#capacity = capacity;
  }

  /** @throws what `settle` throws; `StoreUnavailable` only after ten tries, and then it may be booked later. */
  async run(settle: () => Promise<boolean>): Promise<boolean> {
    try {
      return await settle();
    } catch (error) {
      if (!(error instanceof StoreUnavailable) || this.#closed || this.#kept.size >= this.#capacity) throw error;
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      const kept = { settle, resolve, reject, tries: 1 };
      this.#kept.add(kept);
      this.#retryLater(kept);
      return promise;
    }
  }

  /** Hands all that is kept to the writer for the last time; what fails then is left to the recovery. */
  close(): void {
    this.#closed = true;
    this.#retryAll();
  }

  #retryLater({ tries }: KeptSettlement): void {
    const quick = tries < TRIES_FOR_CALLER;
    if (this.#timer !== undefined && (this.#isQuick || !quick)) return;
    clearTimeout(this.#timer);
    this.#isQuick = quick;
    this.#timer = setTimeout(() => this.#retryAll(), quick ? QUICK_WAIT_MS : SLOW_WAIT_MS).unref();
  }

  /** All in one turn, so that they share a transaction: waiting for another process's lock stops everything else. */
  #retryAll(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const kept of this.#kept) void this.#retry(kept);
  }

  async #retry(kept: KeptSettlement): Promise<void> {
    try {
      kept.resolve(await kept.settle());
      this.#kept.delete(kept);
    } catch (error) {
      kept.tries += 1;
      const willRetry = error instanceof StoreUnavailable && !this.#closed;
      if (!willRetry || kept.tries >= TRIES_FOR_CALLER) kept.reject(error);
      if (willRetry) this.#retryLater(kept);
      else this.#kept.delete(kept);
    }
  }
}
