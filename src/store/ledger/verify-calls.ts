import { hash } from 'node:crypto';
import { sql } from 'kysely';
import { dayOfNumber, idOfBytes } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { build } from '../db/sql.ts';
import { blockDigest, callDigest, callDigests, markOf, marksOf, readMarks, type SealedBlock } from './call-seals.ts';
import { documentText, originKey, referenceDigest, targetKey, verdictKey } from './references.ts';

/** A row that is not what the audit log says. */
export interface HistoryFault {
  readonly kind: 'edited' | 'inserted' | 'deleted';
  readonly table: string;
  /** The row by its key, and by the id that people know where it has one. */
  readonly row: string;
  /** The block of the call log that it belongs to; null: none. */
  readonly block: number | null;
}

/** Most faults that are reported; a table that was emptied would have one for each of its rows. */
const MOST_FAULTS = 1000;

/** What the verified audit log says about calls. */
export interface SealedCalls {
  readonly blocks: readonly SealedBlock[];
  /** The number of the last call that retention was allowed to delete; -1: none. */
  readonly forgotten: number;
  /** The database was made by a version that seals: no call was deleted before. */
  readonly isFromStart: boolean;
}

/** Compares the call log with its seals. Reads all of it: not for the serving thread. */
export function verifyCalls(db: Database, sealed: SealedCalls, progress: (done: number, all: number) => void) {
  const faults: HistoryFault[] = [...blockFaults(db, sealed.blocks)];
  let previous = { last: -1, digest: '' };
  for (const block of sealed.blocks) {
    if (block.previous !== previous.digest) faults.push(ofBlock(block, 'edited'));
    if (faults.length < MOST_FAULTS) {
      faults.push(
        ...lateFaults(db, block, sealed.forgotten),
        ...callFaults(db, block, previous.last, sealed.forgotten),
      );
    }
    previous = block;
    progress(block.number, sealed.blocks.length);
  }
  for (const number of sealed.blocks.at(-1)?.open ?? []) {
    if (callDigest(db, number) === undefined) faults.push(ofCall(db, 'deleted', number, null));
  }
  faults.push(...referenceFaults(db), ...documentFaults(db), ...orphans(db, sealed));
  const unsealed = db.get(
    build
      .selectFrom('ledger')
      .select(({ fn }) => fn.countAll<number>().as('calls'))
      .where('number', '>', previous.last),
  );
  return { faults: faults.slice(0, MOST_FAULTS), unsealed: unsealed?.calls ?? 0 };
}

const ofBlock = ({ number, id }: SealedBlock, kind: HistoryFault['kind']): HistoryFault => ({
  kind,
  table: 'call_blocks',
  row: id,
  block: number,
});

/** Rows of `call_blocks` that are not those of the audit log. */
function blockFaults(db: Database, blocks: readonly SealedBlock[]): HistoryFault[] {
  const columns = ['number', 'last', 'calls', 'digest'] as const;
  const selected = build.selectFrom('call_blocks').select([...columns, 'openJson']);
  const rows = new Map(db.all(selected).map((row) => [row.number, row]));
  const faults: HistoryFault[] = [];
  for (const block of blocks) {
    const row = rows.get(block.number);
    rows.delete(block.number);
    if (row === undefined) faults.push(ofBlock(block, 'deleted'));
    else if (row.openJson !== JSON.stringify(block.open) || columns.some((column) => row[column] !== block[column]))
      faults.push(ofBlock(block, 'edited'));
  }
  for (const number of rows.keys())
    faults.push({ kind: 'inserted', table: 'call_blocks', row: `block_${number}`, block: number });
  return faults;
}

/** Calls from the end of the block before to the end of this one that are not those that were sealed. */
function callFaults(db: Database, block: SealedBlock, after: number, forgotten: number): HistoryFault[] {
  const open = new Set(block.open);
  const calls = callDigests(db, after, block.last).filter(({ number }) => !open.has(number));
  const isGivenUp = block.last <= forgotten;
  if (isGivenUp && calls.length === 0) return [];
  const stored = db.get(build.selectFrom('call_blocks').select('marks').where('number', '=', block.number));
  const marks = stored?.marks ?? Buffer.alloc(0);
  const isWhole = blockDigest(block, calls) === block.digest;
  if (isWhole) return marks.equals(marksOf(calls)) || stored === undefined ? [] : [ofBlock(block, 'edited')];
  const known = readMarks(marks);
  const faults: HistoryFault[] = [];
  const add = (kind: HistoryFault['kind'], number: number): void => {
    faults.push(ofCall(db, kind, number, block.number));
  };
  for (const call of calls) {
    const mark = known.get(call.number);
    known.delete(call.number);
    if (mark === undefined) add('inserted', call.number);
    else if (mark !== markOf(call)) add('edited', call.number);
  }
  if (!isGivenUp) for (const number of known.keys()) add('deleted', number);
  // The marks may have been edited as well: then no call can be named.
  return faults.length > 0 || isGivenUp ? faults : [{ ...ofBlock(block, 'edited'), table: 'ledger' }];
}

/** Calls that ended after the block of their time was closed. Retention may have deleted them before their block. */
function lateFaults(db: Database, { late, number: block }: SealedBlock, forgotten: number): HistoryFault[] {
  return late.flatMap(({ number, digest }) => {
    const call = callDigest(db, number);
    if (call === undefined) return number <= forgotten ? [] : [ofCall(db, 'deleted', number, block)];
    return call.digest.toString('hex') === digest ? [] : [ofCall(db, 'edited', number, block)];
  });
}

const ofCall = (db: Database, kind: HistoryFault['kind'], number: number, block: number | null): HistoryFault => ({
  kind,
  table: 'ledger',
  row: callName(db, number),
  block,
});

function callName(db: Database, number: number): string {
  const call = db.get(build.selectFrom('ledger').select('id').where('number', '=', number));
  return call === undefined ? `call ${number}` : `${idOfBytes(call.id, 'call')} (call ${number})`;
}

/** Rows that are read at once. */
const CHUNK = 1000;

function* inChunks<Row extends { readonly id: number }>(read: (after: number) => readonly Row[]): Generator<Row> {
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = read(after);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

/** An empty text would have the digest of no value. */
const hasEmpty = (row: object): boolean => Object.values(row).includes('');

/** Rows that calls refer to and whose content is not that of their digest: inputs, decisions, callers, targets. */
function* referenceFaults(db: Database): Generator<HistoryFault> {
  const edited = (table: string, column: 'origin' | 'verdict' | 'target', id: number): HistoryFault => {
    const use = db.get(build.selectFrom('ledger').select('number').where(column, '=', id).limit(1));
    return {
      kind: 'edited',
      table,
      row: use === undefined ? `row ${id}` : `row ${id}, of ${callName(db, use.number)}`,
      block: null,
    };
  };
  const origins = build.selectFrom('call_origins').selectAll().orderBy('id').limit(CHUNK);
  for (const row of inChunks((after) => db.all(origins.where('id', '>', after)))) {
    if (hasEmpty(row) || !row.digest.equals(referenceDigest(originKey(row))))
      yield edited('call_origins', 'origin', row.id);
  }
  const verdicts = build
    .selectFrom('call_verdicts')
    .leftJoin('data_documents', 'data_documents.id', 'call_verdicts.document')
    .selectAll('call_verdicts')
    .select('data_documents.digest as dataDigest')
    .orderBy('call_verdicts.id')
    .limit(CHUNK);
  for (const row of inChunks((after) => db.all(verdicts.where('call_verdicts.id', '>', after)))) {
    const made = { ...row, dataDigest: row.dataDigest ?? '' };
    if (hasEmpty(made) || !row.digest.equals(referenceDigest(verdictKey(made, row.clientAddress)))) {
      yield edited('call_verdicts', 'verdict', row.id);
    }
  }
  const targets = build.selectFrom('call_targets').selectAll().orderBy('id').limit(CHUNK);
  for (const row of inChunks((after) => db.all(targets.where('id', '>', after)))) {
    if (hasEmpty(row) || !row.digest.equals(referenceDigest(targetKey(row))))
      yield edited('call_targets', 'target', row.id);
  }
}

/** Data documents whose text is not that of their digest. */
function* documentFaults(db: Database): Generator<HistoryFault> {
  const documents = build.selectFrom('data_documents').select(['id', 'digest', 'text']).orderBy('id').limit(CHUNK);
  for (const { id, digest, text } of inChunks((after) => db.all(documents.where('id', '>', after)))) {
    if (digestOfDocument(db, text) !== digest)
      yield { kind: 'edited', table: 'data_documents', row: `row ${id}, ${digest}`, block: null };
  }
}

function digestOfDocument(db: Database, stored: string): string | undefined {
  try {
    return hash('sha256', documentText(db, stored));
  } catch {
    // A part is missing, or what lists the parts is not a list.
    return undefined;
  }
}

const REFERRED_TO = { call_origins: 'origin', call_verdicts: 'verdict', call_targets: 'target' } as const;

/** Rows to which no call refers, though no call of their last day was deleted. */
function orphans(db: Database, { forgotten, isFromStart }: SealedCalls): HistoryFault[] {
  const oldest = db.get(build.selectFrom('ledger').select('number').orderBy('number').limit(1))?.number ?? -1;
  const day = isFromStart && forgotten === -1 ? -1 : dayOfNumber(isFromStart ? forgotten : Math.max(oldest, forgotten));
  const faults: HistoryFault[] = [];
  for (const table of ['call_origins', 'call_verdicts', 'call_targets'] as const) {
    const used = build.selectFrom('ledger').select(REFERRED_TO[table]).where(REFERRED_TO[table], 'is not', null);
    const unused = build.selectFrom(table).select('id').where('usedOn', '>', day).where('id', 'not in', used);
    faults.push(
      ...db.all(unused).map(({ id }) => ({ kind: 'inserted', table, row: `row ${id}`, block: null }) as const),
    );
  }
  const seen = sql<boolean>`id NOT IN (SELECT document FROM call_verdicts)`;
  const documents = db.all(build.selectFrom('data_documents').select('id').where('usedOn', '>', day).where(seen));
  return [
    ...faults,
    ...documents.map(
      ({ id }) => ({ kind: 'inserted', table: 'data_documents', row: `row ${id}`, block: null }) as const,
    ),
  ];
}
