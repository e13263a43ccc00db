import { type Address, parseAddress } from '../../domain/address.ts';
import { idOfBytes, isDisplaced } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { bind, build, prepare } from '../db/sql.ts';
import { CALL_STATES } from './statements.ts';

/** Rows of the ledger in a block. */
export const BLOCK = 4096;

/** Values with a cell for each row: a 32-bit code of the value. `model` and `provider` are those that served. */
export type Coded =
  | 'organization'
  | 'key'
  | 'member'
  | 'requestedModel'
  | 'model'
  | 'provider'
  | 'outcome'
  | 'reason'
  | 'request'
  | 'clientRequest';

/**
 * Bits for the rules that a decision names and for the caller's groups, one in each column: in the first by some bits of the
 * rule's or group's code, in the second by others.
 */
type RuleBits = 'ruleBits' | 'moreRuleBits';
/** Bits of the caller's address, in the order of addresses: the first 32, and the next. */
type AddressBits = 'addressHigh' | 'addressNext';
/** Milliseconds that the call took, and two; `NONE` where that is not known. Blocks from before there were such cells have none. */
type Took = 'took';
export type CellName = Coded | RuleBits | AddressBits | Took;

/** Rows of the ledger in the order of their numbers, with what they are searched by. */
export interface IndexBlock {
  readonly numbers: Float64Array;
  readonly cells: Readonly<Record<CellName, Int32Array>>;
  /** Numbers of the calls among them that stand far behind the time in their id (call-search.ts). */
  readonly displaced: Float64Array;
}

/** The call is open, so that who serves it is not known yet: may be anything. */
export const UNKNOWN = 0;
/** There is no value. */
export const NONE = 1;

/** The cell for a call's duration. */
export const tookCell = (ms: number | null): number => (ms === null ? NONE : Math.min(ms, 0x7ffffff0) + 2);

/** FNV-1a, but for the two codes that mean something else. */
export function codeOf(value: string | null): number {
  if (value === null) return NONE;
  let code = 0x811c9dc5;
  for (let index = 0; index < value.length; index += 1) {
    code = Math.imul(code ^ value.charCodeAt(index), 0x01000193);
  }
  return code === UNKNOWN || code === NONE ? -1 : code;
}

export const ruleBit = (code: number): number => 1 << (code & 31);
export const moreRuleBit = (code: number): number => 1 << ((code >>> 5) & 31);

/** The first 32 bits of an address and the next, unsigned; an IPv4 address has no more than the first. */
export function addressBits({ family, value }: Address): readonly [high: number, next: number] {
  if (family === 4) return [Number(value), 0];
  return [Number(value >> 96n), Number((value >> 64n) & 0xffffffffn)];
}

/** A copy: the bytes of a row may begin anywhere, typed arrays may not. */
const copied = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBufferLike =>
  buffer.slice(byteOffset, byteOffset + byteLength);

/** The cells that a row of the index holds. */
export const cellsIn = (bytes: Buffer): Int32Array => new Int32Array(copied(bytes));

/** The numbers of calls that a row of the index holds. */
export const numbersIn = (bytes: Buffer): Float64Array => new Float64Array(copied(bytes));

const RULE_ID = /rule_[0-9a-f]{32}/g;
const GROUP_ID = /grp_[0-9a-f]{32}/g;

/** `deny_models`: the kind of the rules that denied a call; null for a permit. @param reasonJson as it is recorded */
export function reasonCode(reasonJson: string | null): string | null {
  const reason: unknown = reasonJson === null ? null : JSON.parse(reasonJson);
  if (typeof reason !== 'object' || reason === null || !('effect' in reason) || !('kind' in reason)) return null;
  return `${reason.effect}_${reason.kind}`;
}

/** Rows of all organizations, from one number to before another. */
const rowsBetween = build
  .selectFrom('ledger')
  .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
  .leftJoin('call_targets', 'call_targets.id', 'ledger.target')
  .select(['ledger.number', 'ledger.id', 'ledger.state', 'ledger.verdict'])
  .select(['ledger.requestId', 'ledger.clientRequestId', 'ledger.tookMs'])
  .select(['call_origins.organizationId', 'call_origins.keyId', 'call_origins.memberId', 'call_origins.requestedModel'])
  .select(['call_targets.modelId', 'call_targets.providerId'])
  .where('ledger.number', '>', bind<number>('after'))
  .where('ledger.number', '<', bind<number>('before'))
  .limit(BLOCK);

/** Cells by which a decision is searched. */
interface VerdictCells {
  readonly outcome: number;
  readonly addressHigh: number;
  readonly addressNext: number;
  readonly reason: number;
  readonly ruleBits: number;
  readonly moreRuleBits: number;
}

const NO_VERDICT: VerdictCells = {
  outcome: NONE,
  addressHigh: 0,
  addressNext: 0,
  reason: NONE,
  ruleBits: 0,
  moreRuleBits: 0,
};

function verdictCells(db: Database, ids: readonly number[]): ReadonlyMap<number, VerdictCells> {
  const rows = db.all(
    build
      .selectFrom('call_verdicts')
      .select(['id', 'clientAddress', 'outcome', 'reasonJson', 'violationsJson', 'shadowJson', 'inputJson'])
      .where('id', 'in', ids),
  );
  return new Map(
    rows.map(({ id, clientAddress, outcome, reasonJson, violationsJson, shadowJson, inputJson }) => {
      const rules = `${violationsJson}${shadowJson}`.match(RULE_ID) ?? [];
      const groups = inputJson.match(GROUP_ID) ?? [];
      let [ruleBits, moreRuleBits] = [0, 0];
      for (const named of new Set([...rules, ...groups])) {
        ruleBits |= ruleBit(codeOf(named));
        moreRuleBits |= moreRuleBit(codeOf(named));
      }
      const address = clientAddress === null ? null : parseAddress(clientAddress);
      const [addressHigh, addressNext] = address === null ? [0, 0] : addressBits(address);
      const reason = codeOf(reasonCode(reasonJson));
      return [id, { outcome: codeOf(outcome), addressHigh, addressNext, reason, ruleBits, moreRuleBits }];
    }),
  );
}

const emptyBlock = (rows: number): Omit<IndexBlock, 'displaced'> => ({
  numbers: new Float64Array(rows),
  cells: {
    organization: new Int32Array(rows),
    key: new Int32Array(rows),
    member: new Int32Array(rows),
    requestedModel: new Int32Array(rows),
    model: new Int32Array(rows),
    provider: new Int32Array(rows),
    outcome: new Int32Array(rows),
    reason: new Int32Array(rows),
    addressHigh: new Int32Array(rows),
    addressNext: new Int32Array(rows),
    request: new Int32Array(rows),
    clientRequest: new Int32Array(rows),
    ruleBits: new Int32Array(rows),
    moreRuleBits: new Int32Array(rows),
    took: new Int32Array(rows),
  },
});

/**
 * At most `BLOCK` rows of the ledger between two numbers, both exclusive: the first of them, or the last.
 * Reads each of them: not for the serving thread.
 */
export function readRows(db: Database, after: number, before: number, from: 'asc' | 'desc'): IndexBlock {
  const statement = prepare(db.connection, rowsBetween.orderBy('ledger.number', from).compile());
  const rows = statement.all({ after, before });
  if (from === 'desc') rows.reverse();
  const verdicts = verdictCells(db, [...new Set(rows.flatMap(({ verdict }) => verdict ?? []))]);
  const { numbers, cells } = emptyBlock(rows.length);
  for (const [place, row] of rows.entries()) {
    const verdict = (row.verdict === null ? undefined : verdicts.get(row.verdict)) ?? NO_VERDICT;
    const isOpen = row.state === CALL_STATES.open;
    numbers[place] = row.number;
    cells.organization[place] = codeOf(row.organizationId);
    cells.key[place] = codeOf(row.keyId);
    cells.member[place] = codeOf(row.memberId);
    cells.requestedModel[place] = codeOf(row.requestedModel);
    cells.model[place] = isOpen ? UNKNOWN : codeOf(row.modelId);
    cells.provider[place] = isOpen ? UNKNOWN : codeOf(row.providerId);
    cells.outcome[place] = verdict.outcome;
    cells.reason[place] = verdict.reason;
    cells.addressHigh[place] = verdict.addressHigh;
    cells.addressNext[place] = verdict.addressNext;
    cells.request[place] = codeOf(idOfBytes(row.requestId, 'req'));
    cells.clientRequest[place] = codeOf(row.clientRequestId);
    cells.ruleBits[place] = verdict.ruleBits;
    cells.moreRuleBits[place] = verdict.moreRuleBits;
    cells.took[place] = isOpen ? UNKNOWN : tookCell(row.tookMs);
  }
  return { numbers, cells, displaced: Float64Array.from(rows.filter(isDisplaced), ({ number }) => number) };
}

const lastIndexed = build.selectFrom('call_index').select(({ fn }) => fn.max<number | null>('last').as('last'));

/** The number of the last call that is in a block. */
export const findLastIndexed = (db: Database): number => db.get(lastIndexed)?.last ?? -1;

/** Whether there is a whole block that is not in the index yet. */
export const hasNextBlock = (db: Database): boolean =>
  db.get(
    build
      .selectFrom('ledger')
      .select('number')
      .where('number', '>', findLastIndexed(db))
      .orderBy('number')
      .limit(1)
      .offset(BLOCK - 1),
  ) !== undefined;

/** The next whole block that is not in the index yet, if there is one. Not for the serving thread. */
export function nextBlock(db: Database): IndexBlock | undefined {
  const block = readRows(db, findLastIndexed(db), Number.MAX_SAFE_INTEGER, 'asc');
  return block.numbers.length === BLOCK ? block : undefined;
}

/** Cells that are all alike are stored as one. */
function bytesOf(cells: Int32Array | Float64Array): Buffer {
  const stored = cells.some((cell) => cell !== cells[0]) ? cells : cells.slice(0, 1);
  return Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength);
}

/** Keeps a block that `nextBlock` read; nothing where the index has it by now. */
export function storeBlock(db: Database, { numbers, cells, displaced }: IndexBlock): void {
  const last = numbers.at(-1);
  if (last === undefined || last <= findLastIndexed(db)) return;
  const named: (readonly [name: string, cells: Int32Array | Float64Array])[] = [
    ['numbers', numbers],
    ...Object.entries(cells),
  ];
  if (displaced.length > 0) named.push(['displaced', displaced]);
  db.run(
    build.insertInto('call_index').values(named.map(([name, values]) => ({ last, name, cells: bytesOf(values) }))),
  );
}

/** Deletes the oldest block if all its calls are gone. @param oldest number of the oldest call that is left @returns how many rows */
export const forgetBlock = (db: Database, oldest: number): number =>
  db.run(
    build
      .deleteFrom('call_index')
      .where('last', '=', ({ selectFrom }) => selectFrom('call_index').select(({ fn }) => fn.min('last').as('last')))
      .where('last', '<', oldest),
  );
