import { existsSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Worker } from 'node:worker_threads';
import type BetterSqlite3 from 'better-sqlite3';
import type { Compilable } from 'kysely';
import { LRUCache } from 'lru-cache';
import { startThread } from '../../lib/threads.ts';
import { assertOurMigrations, MIGRATIONS, migrate, schemaVersion } from '../migrations/migrate.ts';
import { appendToChain } from './audit-chain.ts';
import { syncFolder } from './data-dir.ts';
import { prepare } from './sql.ts';
import { openFile } from './sqlite-file.ts';
import { StateWatch, type TouchedRow } from './state-watch.ts';

/** `normal`: what was acknowledged survives the death of the process. `full`: also the loss of power. */
export type Durability = 'normal' | 'full';

export interface DatabaseOptions {
  durability?: Durability;
  /** Time that a statement waits for another process's lock before it fails; default 250 ms. It blocks the thread. */
  busyTimeoutMs?: number;
  readonly?: boolean;
  /** Only `serve` creates a database or migrates one; otherwise a missing or older one is an error. */
  create?: boolean;
  /** Key of the audit chain: without it what is audited cannot be written. */
  auditKey?: Buffer;
}

/** One synchronous connection. Queries are built by Kysely (`build` in sql.ts) and run at once. */
export interface Database {
  readonly connection: BetterSqlite3.Database;
  readonly auditKey: Buffer | undefined;
  /** Rows that the audit log seals and this connection has touched; undefined: it cannot write to the audit log. */
  readonly stateWatch: StateWatch | undefined;
  all<R>(query: Compilable<R>): R[];
  get<R>(query: Compilable<R>): R | undefined;
  /** Number of rows changed. */
  run(query: Compilable<unknown>): number;
  /** Runs `work` in one transaction, or inside the one that is open; whatever it throws undoes it. It must not wait. */
  transaction<T>(work: () => T): T;
  /** Runs `work`, which only reads, on the database as it is at one moment. It must not wait. */
  snapshot<T>(work: () => T): T;
  close(): void;
}

const IN_MEMORY = ':memory:';

/** A database is made here, and moved to its place once it is whole. */
export const draftPath = (path: string): string => `${path}.new`;

/** Makes it next to its place and moves it there: if this is cut off, no half database has the name of a whole one. */
function createDatabase(path: string): void {
  const draft = draftPath(path);
  for (const leftover of [draft, `${draft}-journal`]) rmSync(leftover, { force: true });
  openFile(draft, {}, migrate).close();
  renameSync(draft, path);
  syncFolder(dirname(path));
}

function connect(path: string, options: DatabaseOptions): BetterSqlite3.Database {
  const { durability = 'normal', busyTimeoutMs = 250, readonly = false, create = false } = options;
  if (path !== IN_MEMORY && !existsSync(path)) {
    if (!create) throw new Error(`There is no database at ${path}: start the server once to create it.`);
    createDatabase(path);
  }
  return openFile(path, { readonly, timeout: busyTimeoutMs }, (connection) => {
    if (!readonly) {
      connection.pragma('journal_mode = WAL');
      // A checkpoint stops its thread for milliseconds: at 4000 pages (16 MB) it hits one call in 500, not one in 125. While calls are
      // served, most of it is done by then (`createCheckpointer`).
      connection.pragma('wal_autocheckpoint = 4000');
      connection.pragma(`synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
    }
    connection.pragma('foreign_keys = ON');
    connection.pragma('trusted_schema = OFF');
  });
}

function assertUpToDate(connection: BetterSqlite3.Database, path: string): void {
  const version = schemaVersion(connection);
  if (version === MIGRATIONS.length) return;
  throw new Error(
    `${path} has schema version ${version}, this version of Portcullis needs ${MIGRATIONS.length}: start the server once to bring it up to date.`,
  );
}

/** Called in the outermost transaction: before it is committed, and after it was undone. */
interface TransactionEnds {
  beforeCommit(): void;
  undone(): void;
}

/** Transactions take the write lock at their begin, so that what they read cannot change before they write. */
function transactions(connection: BetterSqlite3.Database, ends: TransactionEnds): Database['transaction'] {
  const begin = connection.prepare('BEGIN IMMEDIATE');
  const commit = connection.prepare('COMMIT');
  const rollback = connection.prepare('ROLLBACK');
  return (work) => {
    if (connection.inTransaction) return work();
    begin.run();
    try {
      const result = work();
      ends.beforeCommit();
      commit.run();
      return result;
    } catch (error) {
      // SQLite has already rolled back by itself after some errors (disk full).
      if (connection.inTransaction) rollback.run();
      ends.undone();
      throw error;
    }
  };
}

/** Entries about rows that no management change names. */
const byJob = {
  organizationId: '',
  actorKind: 'job',
  actorId: 'seal_state',
  memberId: null,
  targetType: 'state',
  targetId: 'state',
  beforeJson: null,
  afterJson: null,
} as const;

/** Opens the SQLite file at `path`; throws when it is missing, of another schema version, or cannot be opened. */
export function openDatabase(path: string, options: DatabaseOptions = {}): Database {
  const connection = connect(path, options);
  try {
    assertOurMigrations(connection, path);
    if (options.create === true) migrate(connection);
    assertUpToDate(connection, path);
  } catch (error) {
    connection.close();
    throw error;
  }
  const { auditKey } = options;
  const queries: Pick<Database, 'all' | 'get' | 'run'> = {
    all: (query) => prepare(connection, query.compile()).all({}),
    get: (query) => prepare(connection, query.compile()).get({}),
    run: (query) => prepare(connection, query.compile()).run({}),
  };
  const stateWatch = auditKey === undefined || options.readonly === true ? undefined : new StateWatch(connection);
  const sealRest = (action: 'state.begin' | 'state.change', touched: readonly TouchedRow[]): void => {
    if (auditKey === undefined || touched.length === 0) return;
    appendToChain(queries, auditKey, { ...byJob, action, stateJson: JSON.stringify(touched) }, Date.now());
  };
  const transaction = transactions(connection, {
    beforeCommit: () => {
      if (stateWatch !== undefined && stateWatch.touched.size > 0) sealRest('state.change', stateWatch.take());
    },
    undone: () => stateWatch?.forget(),
  });
  if (stateWatch !== undefined && options.create === true) {
    transaction(() => {
      for (const rows of stateWatch.unsealed()) sealRest('state.begin', rows);
    });
  }
  return {
    connection,
    auditKey,
    stateWatch,
    ...queries,
    transaction,
    snapshot: (work) => (connection.inTransaction ? work() : connection.transaction(work).deferred()),
    close: () => connection.close(),
  };
}

/** Keeps most of the work of SQLite's checkpoints off the serving thread. */
export interface Checkpointer {
  /** To be told after each transaction. Never throws: what was committed must not seem to have failed. */
  committed(): void;
  close(): Promise<void>;
}

/** Transactions between two looks at the log; one of a busy server writes some 30 pages. */
const LOOK_EVERY = 16;

/**
 * A checkpoint of 4000 pages stops the thread that does it for 20 to 50 ms. A thread with a connection of its own does it while calls go
 * on, as often as there is enough to do. The serving connection's own checkpoint stays: it then finds little left, and it is the
 * one after which the log starts again. The thread starts with the first look, and is not started again when it breaks.
 * @param onFault told once, when there is no thread (any more): the serving connection then checkpoints alone
 */
export function createCheckpointer(path: string, onFault: (error: unknown) => void): Checkpointer {
  let worker: Worker | undefined;
  let transactions = 0;
  /** No thread is wanted: closed, or broken. */
  let over = false;

  function broke(error: unknown): void {
    if (over) return;
    over = true;
    onFault(error);
  }

  function startWorker(): Worker {
    const started = startThread('checkpoint', { databasePath: path });
    started.unref();
    return started.on('error', broke);
  }

  return {
    committed() {
      transactions += 1;
      if (over || transactions < LOOK_EVERY) return;
      transactions = 0;
      try {
        worker ??= startWorker();
        worker.postMessage({});
      } catch (error) {
        broke(error);
      }
    },
    async close() {
      over = true;
      await worker?.terminate();
    },
  };
}

/**
 * Tells whether anything but the ledger's own bookkeeping may have changed: SQLite's `data_version` moves when another connection
 * commits, the number in `changes` when what it commits is no bookkeeping, and this connection says what it writes itself. One look
 * serves a whole turn of the event loop: the requests of a turn had arrived when it began, so none of them was sent after a change
 * that the look missed.
 */
export class Freshness {
  readonly #dataVersion: BetterSqlite3.Statement<[], unknown>;
  readonly #changes: BetterSqlite3.Statement<[], unknown>;
  #seenVersion: unknown;
  #seenChanges: unknown;
  #epoch = 0;
  #pinned = false;
  #hasLooked = false;

  constructor(connection: BetterSqlite3.Database) {
    this.#dataVersion = connection.prepare<[], unknown>('PRAGMA data_version').pluck();
    this.#changes = connection.prepare<[], unknown>('SELECT number FROM changes').pluck();
    this.#seenVersion = this.#dataVersion.get();
    this.#seenChanges = this.#changes.get();
  }

  /** Stays the same only while nothing has changed. */
  epoch(): number {
    if (!this.#pinned && !this.#hasLooked) {
      this.#look();
      this.#hasLooked = true;
      setImmediate(this.#endTurn);
    }
    return this.#epoch;
  }

  /** The epoch at the last look. */
  lastEpoch(): number {
    return this.#epoch;
  }

  /** Runs `work` inside a write transaction: nobody else can commit until it ends, so one look is enough. */
  during<T>(work: () => T): T {
    this.#look();
    this.#pinned = true;
    try {
      return work();
    } finally {
      this.#pinned = false;
    }
  }

  /** This connection writes something. */
  changed(): void {
    this.#epoch += 1;
  }

  #look(): void {
    const version = this.#dataVersion.get();
    if (version === this.#seenVersion) return;
    this.#seenVersion = version;
    const changes = this.#changes.get();
    if (changes === this.#seenChanges) return;
    this.#seenChanges = changes;
    this.#epoch += 1;
  }

  readonly #endTurn = (): void => {
    this.#hasLooked = false;
  };
}

/** Remembers what was read for as long as nothing changes. */
export class FreshReads<Value> {
  readonly #freshness: Freshness;
  readonly #known: LRUCache<string, { readonly epoch: number; readonly value: Value }>;

  constructor(freshness: Freshness, capacity: number) {
    this.#freshness = freshness;
    this.#known = new LRUCache({ max: capacity });
  }

  get(key: string): Value | undefined {
    const known = this.#known.get(key);
    return known !== undefined && known.epoch === this.#freshness.epoch() ? known.value : undefined;
  }

  /**
   * @param epoch `lastEpoch` from before the read, in the same turn: whatever another process commits from then on, and another reader sees
   * for it meanwhile, the `get` of the next turn sees it
   */
  set(key: string, value: Value, epoch: number): void {
    this.#known.set(key, { epoch, value });
  }
}
