import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { numbersFrom, timeOfNumber } from '../../domain/id.ts';
import { HOUR } from '../../domain/time.ts';
import { appendAuditEntry } from '../audit/audit-entries.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { CALL_STATES } from './statements.ts';

/**
 * The call log is sealed in blocks, so that calls pay nothing for it. A block is closed when it has so many calls, or its first call is so
 * old, in ms, or its hour is over, so that retention deletes whole blocks and whole hours. A call that is open then is sealed by a later
 * block, when it is over.
 */
const BLOCK = 1000;
const CLOSED_AFTER_MS = 60_000;

/** A block as the audit log has it. */
export interface SealedBlock {
  /** `block_7` */
  readonly id: string;
  readonly number: number;
  /** The number up to which calls are in this block or in one before it. */
  readonly last: number;
  readonly calls: number;
  /** Calls up to `last` that are in no block yet, because they were open. */
  readonly open: readonly number[];
  /** Calls that were open when the block before was closed, and are in this one. */
  readonly late: readonly { readonly number: number; readonly digest: string }[];
  /** Of the block before; empty: this is the first. */
  readonly previous: string;
  readonly digest: string;
}

/** A block that another thread has read, with its marks. */
export interface NextSeal {
  readonly block: SealedBlock;
  readonly marks: Uint8Array;
}

/** A call with the SHA-256 of all that the log says of it. */
interface CallDigest {
  readonly number: number;
  readonly digest: Buffer;
}

/** Columns of a call's own. What it refers to is in its text by digest. None changes once the call is over. */
const OWN = [
  'state',
  'createdAt',
  'clientRequestId',
  'reservation',
  'periodStartedAt',
  'memberPeriodStartedAt',
  'projectPeriodStartedAt',
  'organizationPeriodStartedAt',
  'sharedPeriodStartedAt',
  'settledAt',
  'cost',
  'priceUnknown',
  'costDetailsJson',
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'usageEstimated',
  'cached',
  'statusCode',
  'errorCode',
  'tookMs',
  'timesJson',
] as const;

const callText = sql<string>`json_array(ledger.number, hex(ledger.id), hex(ledger.requestId), hex(call_origins.digest),
  hex(call_verdicts.digest), hex(call_targets.digest), ${sql.join(OWN.map((column) => sql.ref(`ledger.${column}`)))})`;

/** Calls with the texts that are sealed. */
const callTexts = build
  .selectFrom('ledger')
  .leftJoin('call_origins', 'call_origins.id', 'ledger.origin')
  .leftJoin('call_verdicts', 'call_verdicts.id', 'ledger.verdict')
  .leftJoin('call_targets', 'call_targets.id', 'ledger.target')
  .select(['ledger.number', 'ledger.state', callText.as('text')])
  .orderBy('ledger.number');

const digestOf = ({ number, text }: { readonly number: number; readonly text: string }): CallDigest => ({
  number,
  digest: hash('sha256', text, 'buffer'),
});

/** Digests of the calls after one number up to another. */
export const callDigests = (db: Database, after: number, last: number): CallDigest[] =>
  db.all(callTexts.where('ledger.number', '>', after).where('ledger.number', '<=', last)).map(digestOf);

/** Digest of one call; undefined: it is not there. */
export function callDigest(db: Database, number: number): CallDigest | undefined {
  const row = db.get(callTexts.where('ledger.number', '=', number));
  return row === undefined ? undefined : digestOf(row);
}

/** @param calls of the block in the order of their numbers, but for the late ones, which come first */
export const blockDigest = ({ previous, late }: Pick<SealedBlock, 'previous' | 'late'>, calls: readonly CallDigest[]) =>
  hash(
    'sha256',
    Buffer.concat([
      Buffer.from(`${previous}\n${late.map(({ digest }) => digest).join('')}\n`),
      ...calls.map(({ digest }) => digest),
    ]),
  );

/** Bytes of a mark: the call's number, and the begin of its digest. */
const MARK = 16;

export function marksOf(calls: readonly CallDigest[]): Buffer {
  const marks = Buffer.alloc(calls.length * MARK);
  for (const [place, { number, digest }] of calls.entries()) {
    marks.writeBigUInt64BE(BigInt(number), place * MARK);
    digest.copy(marks, place * MARK + 8, 0, 8);
  }
  return marks;
}

/** The begins of digests, by the numbers of the calls. */
export function readMarks(marks: Buffer): Map<number, string> {
  const found = new Map<number, string>();
  for (let at = 0; at + MARK <= marks.length; at += MARK) {
    found.set(Number(marks.readBigUInt64BE(at)), marks.toString('hex', at + 8, at + MARK));
  }
  return found;
}

export const markOf = ({ digest }: CallDigest): string => digest.toString('hex', 0, 8);

interface LastBlock {
  readonly number: number;
  readonly last: number;
  readonly digest: string;
  readonly open: readonly number[];
}

function findLastBlock(db: Database): LastBlock {
  const columns = ['number', 'last', 'digest', 'openJson'] as const;
  const row = db.get(build.selectFrom('call_blocks').select(columns).orderBy('number', 'desc').limit(1));
  return row === undefined ? { number: 0, last: -1, digest: '', open: [] } : { ...row, open: JSON.parse(row.openJson) };
}

/** Whether there are calls in no block. */
export function hasUnsealed(db: Database): boolean {
  const { last, open } = findLastBlock(db);
  return (
    open.length > 0 ||
    db.get(build.selectFrom('ledger').select('number').where('number', '>', last).limit(1)) !== undefined
  );
}

/**
 * The next block, if it can be closed. Not for the serving thread. @param now epoch ms; infinite: close what there is
 * @param before number from which on calls stay out
 */
export function nextSeal(db: Database, now: number, before = Number.MAX_SAFE_INTEGER): NextSeal | undefined {
  const last = findLastBlock(db);
  const range = callTexts.where('ledger.number', '>', last.last).where('ledger.number', '<', before);
  const rows = db.all(range.limit(BLOCK + 1));
  const waitedFor = last.open.length === 0 ? [] : db.all(callTexts.where('ledger.number', 'in', last.open));
  const late = waitedFor.filter(isOver).map(digestOf);
  const [oldest] = rows;
  if (oldest === undefined && late.length === 0) return undefined;
  const time = timeOfNumber(oldest?.number ?? 0);
  const end = numbersFrom(time - (time % HOUR) + HOUR);
  const inHour = rows.slice(0, BLOCK).filter(({ number }) => number < end);
  if (inHour.length < BLOCK && inHour.length === rows.length && now - time < CLOSED_AFTER_MS) return undefined;
  const calls = inHour.filter(isOver).map(digestOf);
  const ended = new Set(late.map(({ number }) => number));
  const open = [
    ...last.open.filter((number) => !ended.has(number)),
    ...inHour.filter((row) => !isOver(row)).map(({ number }) => number),
  ];
  const block = {
    id: `block_${last.number + 1}`,
    number: last.number + 1,
    last: inHour.at(-1)?.number ?? last.last,
    calls: calls.length,
    open,
    late: late.map(({ number, digest }) => ({ number, digest: digest.toString('hex') })),
    previous: last.digest,
  };
  return { block: { ...block, digest: blockDigest(block, calls) }, marks: marksOf(calls) };
}

const isOver = ({ state }: { readonly state: number }): boolean => state !== CALL_STATES.open;

const byJob = { organizationId: '', actorKind: 'job', memberId: null, targetType: 'calls', beforeJson: null } as const;

/** Puts down a block and its entry in the audit log, both or neither; nothing where another process has sealed those calls meanwhile. */
export function storeSeal(db: Database, { block, marks }: NextSeal, now: number): void {
  db.transaction(() => {
    const last = findLastBlock(db);
    if (last.number !== block.number - 1 || last.digest !== block.previous) return;
    const { number, calls, digest } = block;
    const columns = { number, last: block.last, calls, digest, openJson: JSON.stringify(block.open) };
    db.run(build.insertInto('call_blocks').values({ ...columns, marks: Buffer.from(marks) }));
    const entry = { ...byJob, actorId: 'seal_calls', action: 'calls.seal', targetId: block.id };
    appendAuditEntry(db, { ...entry, afterJson: JSON.stringify(block) }, now);
  });
}

/** Seals a block of the calls below a number that are not sealed yet. @returns whether there may be more */
export function sealBefore(db: Database, before: number, now: number): boolean {
  const seal = nextSeal(db, Number.POSITIVE_INFINITY, before);
  if (seal !== undefined) storeSeal(db, seal, now);
  return seal !== undefined;
}

/** Calls up to `last` that retention may delete, as the audit log says, but for those that are in no block yet. */
export const forgettable = (db: Database): { readonly last: number; readonly open: readonly number[] } => ({
  last: lastForgotten(db),
  open: findLastBlock(db).open,
});

const lastForgotten = (db: Database): number =>
  db.get(build.selectFrom('call_blocks').select('last').where('forgotten', '=', 1).orderBy('number', 'desc').limit(1))
    ?.last ?? -1;

/** Gives up the blocks whose calls are all below a number: from then on they may be deleted. */
export function giveUpBlocks(db: Database, before: number, now: number): void {
  db.transaction(() => {
    const old = build
      .selectFrom('call_blocks')
      .select(['number', 'last'])
      .where('last', '<', before)
      .orderBy('number', 'desc')
      .limit(1);
    const last = db.get(old);
    if (last === undefined || last.last <= lastForgotten(db)) return;
    db.run(build.updateTable('call_blocks').set({ forgotten: 1 }).where('number', '<=', last.number));
    const id = `block_${last.number}`;
    const entry = { ...byJob, actorId: 'forget_calls', action: 'calls.forget', targetId: id };
    appendAuditEntry(db, { ...entry, afterJson: JSON.stringify({ id, last: last.last }) }, now);
  });
}

/** Drops the marks of blocks whose calls are gone. @param oldest number of the oldest call that is left */
export const dropMarks = (db: Database, oldest: number): number =>
  db.run(
    build
      .updateTable('call_blocks')
      .set({ marks: null })
      .where('forgotten', '=', 1)
      .where('last', '<', oldest)
      .where('marks', 'is not', null),
  );
