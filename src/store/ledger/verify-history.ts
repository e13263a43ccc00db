import { type ChainVerdict, verifyAuditChain } from '../audit/audit-entries.ts';
import type { AuditEntryRecord } from '../db/audit-chain.ts';
import type { Database } from '../db/database.ts';
import { stateDigests, type TouchedRow } from '../db/state-watch.ts';
import type { SealedBlock } from './call-seals.ts';
import { type HistoryFault, verifyCalls } from './verify-calls.ts';

/** What was found of the audit log, and of all that it seals. */
export interface HistoryVerdict extends ChainVerdict {
  /** Rows that are not what the audit log says; none are looked for where the log itself is broken. */
  readonly faults: readonly HistoryFault[];
  readonly blocks: number;
  /** Calls that are in no block yet. */
  readonly unsealed: number;
}

/**
 * Verifies the audit log and then, by it, the call log and the state in force, all as they are at one moment. Reads every row: not
 * for the serving thread. @param noted `hmac` of a head that was noted earlier
 */
export const verifyHistory = (
  db: Database,
  key: Buffer,
  noted: string | undefined,
  progress: (done: number, all: number) => void,
): HistoryVerdict =>
  db.snapshot(() => {
    const log = new SealedLog();
    const chain = verifyAuditChain(db, key, noted, progress, (entry) => log.read(entry));
    if (chain.fault !== undefined) return { ...chain, faults: [], blocks: log.blocks.length, unsealed: 0 };
    const calls = verifyCalls(db, log, progress);
    const faults = [...log.state.faults(db), ...calls.faults];
    return { ...chain, faults, blocks: log.blocks.length, unsealed: calls.unsealed };
  });

/** What the entries of the audit log seal. */
class SealedLog {
  readonly blocks: SealedBlock[] = [];
  forgotten = -1;
  isFromStart = true;
  readonly state = new SealedState();

  read({ action, afterJson, stateJson }: AuditEntryRecord): void {
    if (stateJson !== null) this.state.read(JSON.parse(stateJson));
    if (action === 'calls.seal') this.blocks.push(JSON.parse(afterJson ?? ''));
    if (action === 'calls.forget') {
      const { last }: { readonly last: number } = JSON.parse(afterJson ?? '');
      this.forgotten = last;
    }
    if (action === 'state.begin') this.isFromStart = false;
  }
}

/** Rules, groups, tags, keys and limits as the entries of the audit log imply them. */
class SealedState {
  readonly #digests = new Map<string, string>();
  readonly #faults = new Map<string, HistoryFault>();
  #isSealed = false;

  /** A change found the row as the one before left it, or someone had changed it in between. */
  read(rows: readonly TouchedRow[]): void {
    this.#isSealed = true;
    for (const [table, key, before, after] of rows) {
      const place = `${table} ${key}`;
      this.#compare(table, key, this.#digests.get(place) ?? null, before);
      if (after === null) this.#digests.delete(place);
      else this.#digests.set(place, after);
    }
  }

  faults(db: Database): HistoryFault[] {
    // A database of an earlier version is sealed by the next start.
    if (!this.#isSealed) return [];
    const missing = new Map(this.#digests);
    for (const { table, key, digest } of stateDigests(db.connection)) {
      const place = `${table} ${key}`;
      this.#compare(table, key, this.#digests.get(place) ?? null, digest);
      missing.delete(place);
    }
    for (const [place, digest] of missing) {
      const end = place.indexOf(' ');
      this.#compare(place.slice(0, end), place.slice(end + 1), digest, null);
    }
    return [...this.#faults.values()];
  }

  #compare(table: string, row: string, expected: string | null, found: string | null): void {
    if (expected === found) return;
    const kind = expected === null ? 'inserted' : found === null ? 'deleted' : 'edited';
    this.#faults.set(`${table} ${row}`, { kind, table, row, block: null });
  }
}
