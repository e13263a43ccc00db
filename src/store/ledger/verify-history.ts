import { type AuditEntryRecord, type ChainVerdict, verifyAuditChain } from '../audit/audit-entries.ts';
import type { Database } from '../db/database.ts';
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
    return { ...chain, faults: calls.faults, blocks: log.blocks.length, unsealed: calls.unsealed };
  });

/** What the entries of the audit log seal. */
class SealedLog {
  readonly blocks: SealedBlock[] = [];
  forgotten = -1;
  isFromStart = true;

  read({ action, afterJson }: AuditEntryRecord): void {
    if (action === 'calls.seal') this.blocks.push(JSON.parse(afterJson ?? ''));
    if (action === 'calls.forget') {
      const { last }: { readonly last: number } = JSON.parse(afterJson ?? '');
      this.forgotten = last;
    }
    if (action === 'state.begin') this.isFromStart = false;
  }
}
