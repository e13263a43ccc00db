import { idOfBytes } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { bind, build, prepare } from '../db/sql.ts';
import { CALL_STATES } from './ledger-statements.ts';

/** Rows of the ledger in a block. */
export const BLOCK = 4096;

/** What has a cell for each row: a 32-bit code of the value. `model` and `provider` are those that served. */
type Coded =
  | 'organization'
  | 'key'
  | 'member'
  | 'requestedModel'
  | 'model'
  | 'provider'
  | 'outcome'
  | 'reason'
  | 'address'
  | 'request'
  | 'clientRequest';

/** Of the rules that a decision names, and of the caller's groups, a bit for each in both: the first by some bits of its code, the second by others. */
type RuleBits = 'ruleBits' | 'moreRuleBits';
type CellName = Coded | RuleBits;

/** Rows of the ledger in the order of their numbers, with what they are searched by. */
export interface IndexBlock {
  readonly numbers: Float64Array;
  readonly cells: Readonly<Record<CellName, Int32Array>>;
}

/** What calls are wanted. Every value has a code that it may share with others: what is found is a superset, to be compared. */
export interface Wanted extends Partial<Readonly<Record<Exclude<Coded, 'requestedModel'>, string>>> {
  readonly organization: string;
  /** A rule's id. */
  readonly rule?: string;
  /** A group's id. */
  readonly group?: string;
  /** False: also those without a decision. */
  readonly isDecided?: boolean;
}

/** The call is open, so that who serves it is not known yet: may be anything. */
const UNKNOWN = 0;
/** There is no value. */
const NONE = 1;

/** FNV-1a, but for the two codes that mean something else. */
function codeOf(value: string | null): number {
  if (value === null) return NONE;
  let code = 0x811c9dc5;
  for (let index = 0; index < value.length; index += 1) {
    code = Math.imul(code ^ value.charCodeAt(index), 0x01000193);
  }
  return code === UNKNOWN || code === NONE ? -1 : code;
}

const ruleBit = (code: number): number => 1 << (code & 31);
const moreRuleBit = (code: number): number => 1 << ((code >>> 5) & 31);

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
  .select(['ledger.number', 'ledger.state', 'ledger.verdict', 'ledger.requestId', 'ledger.clientRequestId'])
  .select(['call_origins.organizationId', 'call_origins.keyId', 'call_origins.memberId', 'call_origins.requestedModel'])
  .select(['call_targets.modelId', 'call_targets.providerId'])
  .where('ledger.number', '>', bind<number>('after'))
  .where('ledger.number', '<', bind<number>('before'))
  .limit(BLOCK);

/** What a decision is searched by. */
interface VerdictCells {
  readonly outcome: number;
  readonly address: number;
  readonly reason: number;
  readonly ruleBits: number;
  readonly moreRuleBits: number;
}

const NO_VERDICT: VerdictCells = { outcome: NONE, address: NONE, reason: NONE, ruleBits: 0, moreRuleBits: 0 };

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
      const [address, reason] = [codeOf(clientAddress), codeOf(reasonCode(reasonJson))];
      return [id, { outcome: codeOf(outcome), address, reason, ruleBits, moreRuleBits }];
    }),
  );
}

const emptyBlock = (rows: number): IndexBlock => ({
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
    address: new Int32Array(rows),
    request: new Int32Array(rows),
    clientRequest: new Int32Array(rows),
    ruleBits: new Int32Array(rows),
    moreRuleBits: new Int32Array(rows),
  },
});

/**
 * At most `BLOCK` rows of the ledger between two numbers, both exclusive: the first of them, or the last.
 * Reads each of them: not for the serving thread.
 */
function readRows(db: Database, after: number, before: number, from: 'asc' | 'desc'): IndexBlock {
  const statement = prepare(db.connection, rowsBetween.orderBy('ledger.number', from).compile());
  const rows = statement.all({ after, before });
  if (from === 'desc') rows.reverse();
  const verdicts = verdictCells(db, [...new Set(rows.flatMap(({ verdict }) => verdict ?? []))]);
  const { numbers, cells } = emptyBlock(rows.length);
  for (const [place, row] of rows.entries()) {
    const { outcome, address, reason, ruleBits, moreRuleBits } =
      (row.verdict === null ? undefined : verdicts.get(row.verdict)) ?? NO_VERDICT;
    const isOpen = row.state === CALL_STATES.open;
    numbers[place] = row.number;
    cells.organization[place] = codeOf(row.organizationId);
    cells.key[place] = codeOf(row.keyId);
    cells.member[place] = codeOf(row.memberId);
    cells.requestedModel[place] = codeOf(row.requestedModel);
    cells.model[place] = isOpen ? UNKNOWN : codeOf(row.modelId);
    cells.provider[place] = isOpen ? UNKNOWN : codeOf(row.providerId);
    cells.outcome[place] = outcome;
    cells.reason[place] = reason;
    cells.address[place] = address;
    cells.request[place] = codeOf(idOfBytes(row.requestId, 'req'));
    cells.clientRequest[place] = codeOf(row.clientRequestId);
    cells.ruleBits[place] = ruleBits;
    cells.moreRuleBits[place] = moreRuleBits;
  }
  return { numbers, cells };
}

const lastIndexed = build.selectFrom('call_index').select(({ fn }) => fn.max<number | null>('last').as('last'));

const findLastIndexed = (db: Database): number => db.get(lastIndexed)?.last ?? -1;

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
export function storeBlock(db: Database, { numbers, cells }: IndexBlock): void {
  const last = numbers.at(-1);
  if (last === undefined || last <= findLastIndexed(db)) return;
  const named = [['numbers', numbers], ...Object.entries(cells)] as const;
  db.run(
    build.insertInto('call_index').values(named.map(([name, values]) => ({ last, name, cells: bytesOf(values) }))),
  );
}

/** A copy: the bytes of a row may begin anywhere, typed arrays may not. */
const copied = ({ buffer, byteOffset, byteLength }: Buffer): ArrayBufferLike =>
  buffer.slice(byteOffset, byteOffset + byteLength);

const cellAt = (cells: Int32Array, place: number): number => (cells.length === 1 ? cells[0] : cells[place]) ?? UNKNOWN;

/** Where the rows of a block are that may be wanted, the last first; each kind of cell is read when it is needed. */
function placesIn(wanted: Wanted, rows: number, read: (name: CellName) => Int32Array): number[] {
  let places: number[] = [];
  let isFirst = true;
  const keep = (isWanted: (place: number) => boolean): void => {
    if (isFirst) for (let place = rows - 1; place >= 0; place -= 1) isWanted(place) && places.push(place);
    else places = places.filter(isWanted);
    isFirst = false;
  };
  for (const test of testsOf(wanted)) if (isFirst || places.length > 0) keep(test(read));
  return places;
}

type Test = (read: (name: CellName) => Int32Array) => (place: number) => boolean;

/** What the rows must be, first what few are. */
function testsOf(wanted: Wanted): Test[] {
  const { rule, group, model, isDecided } = wanted;
  const tests: Test[] = [];
  const equals = (name: Coded, value: string | undefined): void => {
    if (value === undefined) return;
    const code = codeOf(value);
    tests.push((read) => {
      const cells = read(name);
      return (place) => cellAt(cells, place) === code || cellAt(cells, place) === UNKNOWN;
    });
  };
  equals('request', wanted.request);
  equals('clientRequest', wanted.clientRequest);
  for (const named of [rule, group]) {
    if (named === undefined) continue;
    const [bit, moreBit] = [ruleBit(codeOf(named)), moreRuleBit(codeOf(named))];
    tests.push((read) => {
      const [bits, moreBits] = [read('ruleBits'), read('moreRuleBits')];
      return (place) => (cellAt(bits, place) & bit) !== 0 && (cellAt(moreBits, place) & moreBit) !== 0;
    });
  }
  equals('reason', wanted.reason);
  equals('address', wanted.address);
  equals('key', wanted.key);
  if (model !== undefined) {
    const code = codeOf(model);
    tests.push((read) => {
      const [asked, served] = [read('requestedModel'), read('model')];
      return (place) =>
        cellAt(asked, place) === code || cellAt(served, place) === code || cellAt(served, place) === UNKNOWN;
    });
  }
  equals('outcome', wanted.outcome);
  equals('provider', wanted.provider);
  equals('member', wanted.member);
  if (isDecided === true) {
    tests.push((read) => {
      const outcomes = read('outcome');
      return (place) => cellAt(outcomes, place) !== NONE;
    });
  }
  equals('organization', wanted.organization);
  return tests;
}

/**
 * Numbers of calls that may be wanted, the latest first, from `from` on and before `before`. What the index lacks is read from the
 * ledger, which is at most a few blocks while a server runs. Not for the serving thread.
 */
export function* findNumbers(db: Database, wanted: Wanted, from: number, before: number): Generator<number> {
  const after = Math.max(findLastIndexed(db), from - 1);
  for (let end = before; end > after + 1; ) {
    const { numbers, cells } = readRows(db, after, end, 'desc');
    for (const place of placesIn(wanted, numbers.length, (name) => cells[name])) yield numbers[place] ?? 0;
    if (numbers.length < BLOCK) break;
    end = numbers[0] ?? 0;
  }
  yield* findIndexed(db, wanted, from, before);
}

function* findIndexed(db: Database, wanted: Wanted, from: number, before: number): Generator<number> {
  const statement = prepare(
    db.connection,
    build
      .selectFrom('call_index')
      .select('cells')
      .where('last', '=', bind<number>('last'))
      .where('name', '=', bind<string>('name'))
      .compile(),
  );
  const read = (last: number, name: string): ArrayBufferLike => {
    const row = statement.get({ last, name });
    return row === undefined ? new ArrayBuffer(0) : copied(row.cells); // Retention has deleted the block meanwhile.
  };
  for (const last of blocksOf(db, from, before)) {
    const places = placesIn(wanted, BLOCK, (name) => new Int32Array(read(last, name)));
    if (places.length === 0) continue;
    const numbers = new Float64Array(read(last, 'numbers'));
    for (const place of places) {
      const number = numbers[place] ?? 0;
      if (number >= from && number < before) yield number;
    }
  }
}

/** The blocks that reach into a range of numbers, latest first. */
function blocksOf(db: Database, from: number, before: number): number[] {
  const rows = db.all(
    build
      .selectFrom('call_index')
      .select('last')
      .where('name', '=', 'numbers')
      .where('last', '>=', from)
      .orderBy('last', 'desc'),
  );
  const lasts = rows.map(({ last }) => last);
  // The first that ends at or after the range's end holds what is before that end.
  const begin = lasts.findLastIndex((last) => last >= before);
  return lasts.slice(Math.max(begin, 0));
}

/** Deletes the oldest block if all its calls are gone. @param oldest number of the oldest call that is left @returns how many rows */
export const forgetBlock = (db: Database, oldest: number): number =>
  db.run(
    build
      .deleteFrom('call_index')
      .where('last', '=', ({ selectFrom }) => selectFrom('call_index').select(({ fn }) => fn.min('last').as('last')))
      .where('last', '<', oldest),
  );
