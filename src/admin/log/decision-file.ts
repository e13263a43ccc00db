import { appendFileSync, existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import manifest from '../../../package.json' with { type: 'json' };
import { ConfigError } from '../../config/variables.ts';
import { timeOfNumber } from '../../domain/id.ts';
import { ROTATED_FILE_MODE, RotatedFile, type RotatedFileOptions } from '../../lib/files.ts';
import { permittedBy } from '../../policy/denial.ts';
import type { Database } from '../../store/db/database.ts';
import { type FollowPosition, follow, skipOldest } from '../../store/ledger/call-follower.ts';
import { type CallFilter, type DecidedCall, readAllDecided, searchDecided } from '../../store/ledger/call-log.ts';
import { DECISION_PATH, decisionEntry } from './log-view.ts';

export interface DecisionFileOptions extends RotatedFileOptions {
  /** The ledger's position when the server started: the first file begins there. */
  readonly begin: FollowPosition;
  /** Calls that may wait to be written; of more, the oldest are left out. */
  readonly maxBehind?: number;
}

/** The result of writing once. */
export interface FileProgress {
  readonly written: number;
  /** Decisions that were left out because too many were waiting. */
  readonly dropped: number;
  /** There may be more to write. */
  readonly isBehind: boolean;
  /** Why nothing could be written; it is tried again. */
  readonly fault?: string;
}

/** The position at which the file continues, kept next to it. `size` is the file's size when it was kept. */
interface KeptPosition extends FollowPosition {
  readonly size: number;
}

/** Calls that are written at once. */
const AT_ONCE = 1000;
const MAX_BEHIND = 1_000_000;

/**
 * The decisions of all organizations in a file, each in a line when its call is over, as `decisions export` writes them. The database is
 * the queue: nothing waits in memory, and after a failure or a stop it goes on where it was. A crash neither loses nor repeats a line:
 * what was written after the position that was kept is read back. Not for the serving thread.
 */
export class DecisionFile {
  readonly #db: Database;
  readonly #file: RotatedFile;
  readonly #positionPath: string;
  readonly #maxBehind: number;
  readonly #begin: FollowPosition;
  #position: FollowPosition | undefined;
  /** Ids of decisions that stand in the file though the position says they do not. */
  readonly #written = new Set<string>();

  constructor(db: Database, { begin, maxBehind = MAX_BEHIND, ...options }: DecisionFileOptions) {
    this.#db = db;
    this.#file = new RotatedFile(options);
    this.#positionPath = `${options.path}.position`;
    this.#maxBehind = maxBehind;
    this.#begin = begin;
  }

  /** Writes some of what is over. */
  write(): FileProgress {
    let dropped = 0;
    try {
      this.#position ??= this.#readPosition();
      const skipped = skipOldest(this.#db, this.#position, this.#maxBehind);
      if (skipped !== undefined) {
        this.#position = skipped.position;
        dropped = skipped.decisions;
      }
      const { numbers, position, isBehind } = follow(this.#db, this.#position, AT_ONCE);
      if (position.after === this.#position.after && numbers.length === 0) return { written: 0, dropped, isBehind };
      const written = this.#append(readAllDecided(this.#db, numbers));
      this.#position = position;
      this.#keepPosition(position);
      if (this.#file.rotate()) this.#keepPosition(position);
      return { written, dropped, isBehind };
    } catch (error) {
      if (!(error instanceof Error && 'syscall' in error)) throw error;
      return { written: 0, dropped, isBehind: false, fault: error.message };
    }
  }

  /** @returns how many lines were written */
  #append(decided: readonly DecidedCall[]): number {
    const lines = decided.filter(({ call }) => !this.#written.has(call.decisionId)).map(decisionLine);
    if (lines.length > 0) this.#file.append(`${lines.join('\n')}\n`);
    for (const { call } of decided) this.#written.delete(call.decisionId);
    return lines.length;
  }

  /** The kept position, or the ledger's position at the start if there is no such file. */
  #readPosition(): FollowPosition {
    const kept = readKept(this.#positionPath);
    if (kept === undefined) {
      this.#keepPosition(this.#begin);
      return this.#begin;
    }
    for (const line of this.#file.readFrom(kept.size).split('\n')) {
      if (line !== '') this.#written.add(decisionIdIn(line));
    }
    return kept;
  }

  #keepPosition(position: FollowPosition): void {
    const kept: KeptPosition = { ...position, size: this.#file.size };
    writeFileSync(`${this.#positionPath}.new`, JSON.stringify(kept), { mode: ROTATED_FILE_MODE });
    renameSync(`${this.#positionPath}.new`, this.#positionPath);
  }
}

/** So that a path that cannot be written keeps the process from starting. @throws ConfigError */
export function checkDecisionFile(file: string): void {
  const folder = path.dirname(file);
  // To make it would hide a typo, and the log would be written where nobody looks for it.
  if (!existsSync(folder)) throw new ConfigError(`DECISION_LOG_FILE: there is no folder ${folder}.`);
  try {
    appendFileSync(file, '', { mode: ROTATED_FILE_MODE });
  } catch (error) {
    throw new ConfigError(
      `DECISION_LOG_FILE: cannot write ${file}: ${error instanceof Error ? error.message : error}.`,
    );
  }
}

/** Undefined: there is none, or someone has written something else there. */
function readKept(file: string): KeptPosition | undefined {
  try {
    const kept: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return isKept(kept) ? kept : undefined;
  } catch (error) {
    if (error instanceof SyntaxError || (error instanceof Error && 'code' in error && error.code === 'ENOENT'))
      return undefined;
    throw error;
  }
}

const isKept = (value: unknown): value is KeptPosition =>
  typeof value === 'object' &&
  value !== null &&
  'after' in value &&
  Number.isSafeInteger(value.after) &&
  'size' in value &&
  Number.isSafeInteger(value.size) &&
  'open' in value &&
  Array.isArray(value.open) &&
  value.open.every(Number.isSafeInteger);

function decisionIdIn(line: string): string {
  const entry: { readonly decision_id: string } = JSON.parse(line);
  return entry.decision_id;
}

interface ExportedDecision {
  /** JSON in one line, without its end. */
  readonly line: string;
  /** Epoch ms. */
  readonly time: number;
}

/** Decisions that are wanted, oldest first. Reads many rows: not for the serving thread. */
export function* exportDecisions(db: Database, filter: CallFilter): Generator<ExportedDecision> {
  for (const decided of searchDecided(db, filter)) {
    yield { line: decisionLine(decided), time: timeOfNumber(decided.call.number) };
  }
}

/**
 * A decision in the format of OPA's decision log, without the end of the line. Its fields that have no meaning here are left out; what it
 * has no field for stands under `portcullis`.
 */
const decisionLine = (decided: DecidedCall): string => JSON.stringify(opaEntry(decided));

const LABELS = { app: manifest.name, version: manifest.version };

function opaEntry({ call, decision }: DecidedCall): object {
  const entry = decisionEntry(call);
  const { input, violations, shadow, bundleDigest, ruleRevision, dataDigest } = decision;
  return {
    labels: LABELS,
    decision_id: entry.id,
    bundles: { policy: { revision: bundleDigest } },
    path: DECISION_PATH,
    input,
    result: { permitted: permittedBy(input, violations), violations, ...(shadow === null ? {} : { shadow }) },
    ...(entry.requestedBy === null ? {} : { requested_by: entry.requestedBy }),
    timestamp: entry.timestamp,
    portcullis: {
      organization_id: call.organizationId,
      project_id: entry.projectId,
      member_id: entry.memberId,
      key_id: entry.keyId,
      call_id: entry.callId,
      request_id: entry.requestId,
      client_request_id: entry.clientRequestId,
      requested_model: entry.requestedModel,
      outcome: entry.outcome,
      reason: entry.reason,
      rule_revision: ruleRevision,
      data_digest: dataDigest,
      provider: entry.provider,
      model: entry.model,
      status_code: entry.statusCode,
      error_code: entry.errorCode,
      cost: entry.cost,
    },
  };
}
