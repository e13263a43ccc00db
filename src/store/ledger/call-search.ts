import type { AddressRange } from '../../domain/address.ts';
import { bytesOfId, earliestNumber, endOfNear } from '../../domain/id.ts';
import type { Database } from '../db/database.ts';
import { bind, build, prepare } from '../db/sql.ts';
import {
  addressBits,
  BLOCK,
  type CellName,
  type Coded,
  cellsIn,
  codeOf,
  findLastIndexed,
  moreRuleBit,
  NONE,
  numbersIn,
  readRows,
  ruleBit,
  tookCell,
  UNKNOWN,
} from './call-index.ts';

/** Criteria for calls. Every value has a code that it may share with others: the result is a superset, to be compared. */
export interface CallCriteria extends Partial<Readonly<Record<Exclude<Coded, 'requestedModel'>, string>>> {
  readonly organization: string;
  /** Addresses of the caller. */
  readonly addresses?: AddressRange;
  /** A rule's id. */
  readonly rule?: string;
  /** A group's id. */
  readonly group?: string;
  /** Milliseconds: the call took longer. */
  readonly slowerThan?: number;
  /** False: also those without a decision. */
  readonly isDecided?: boolean;
}

/** Which numbers are looked at: from one on and before another, in this order. */
interface SearchRange {
  readonly from: number;
  readonly before: number;
  readonly order: 'asc' | 'desc';
}

const cellAt = (cells: Int32Array, place: number): number => (cells.length === 1 ? cells[0] : cells[place]) ?? UNKNOWN;

/** Places in a block of the rows that may be wanted, in their order; each kind of cell is read when it is needed. */
function placesIn(wanted: CallCriteria, rows: number, read: (name: CellName) => Int32Array): number[] {
  let places: number[] = [];
  let isFirst = true;
  const keep = (isWanted: (place: number) => boolean): void => {
    if (isFirst) for (let place = 0; place < rows; place += 1) isWanted(place) && places.push(place);
    else places = places.filter(isWanted);
    isFirst = false;
  };
  for (const test of testsOf(wanted)) if (isFirst || places.length > 0) keep(test(read));
  return places;
}

type Test = (read: (name: CellName) => Int32Array) => (place: number) => boolean;

/** Tests for the rows, the most selective first. */
function testsOf(wanted: CallCriteria): Test[] {
  const { rule, group, model, addresses, isDecided } = wanted;
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
  if (wanted.slowerThan !== undefined) {
    const most = tookCell(wanted.slowerThan);
    tests.push((read) => {
      const cells = read('took');
      // A block without them has no call whose time is known.
      if (cells.length === 0) return () => false;
      return (place) => cellAt(cells, place) > most || cellAt(cells, place) === UNKNOWN;
    });
  }
  equals('reason', wanted.reason);
  if (addresses !== undefined) tests.push(...addressTests(addresses));
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

/** The first 64 bits of an address in the range. */
function addressTests({ family, network, prefix }: AddressRange): Test[] {
  const [high, next] = addressBits({ family, value: network });
  const within = (name: CellName, first: number, bits: number): Test => {
    const last = first + 2 ** (32 - bits) - 1;
    return (read) => {
      const cells = read(name);
      return (place) => {
        const word = cellAt(cells, place) >>> 0;
        return word >= first && word <= last;
      };
    };
  };
  const ofHigh = within('addressHigh', high, Math.min(prefix, 32));
  return prefix <= 32 ? [ofHigh] : [ofHigh, within('addressNext', next, Math.min(prefix - 32, 32))];
}

/**
 * Numbers of calls that may be wanted. What the index lacks is read from the ledger, which is at most a few blocks while a server runs.
 * Not for the serving thread.
 */
export function* findNumbers(db: Database, wanted: CallCriteria, range: SearchRange): Generator<number> {
  // Rows that are indexed from now on are read from the ledger, and not twice.
  const end = findLastIndexed(db) + 1;
  const indexed = { ...range, before: Math.min(end, range.before) };
  if (range.order === 'asc') yield* findIndexed(db, wanted, indexed);
  yield* findInLedger(db, wanted, { ...range, from: Math.max(end, range.from) });
  if (range.order === 'desc') yield* findIndexed(db, wanted, indexed);
}

function* findInLedger(db: Database, wanted: CallCriteria, { from, before, order }: SearchRange): Generator<number> {
  for (let [after, end] = [from - 1, before]; end > after + 1; ) {
    const { numbers, cells } = readRows(db, after, end, order);
    const places = placesIn(wanted, numbers.length, (name) => cells[name]);
    for (const place of inOrder(places, order)) yield numbers[place] ?? 0;
    if (numbers.length < BLOCK) return;
    if (order === 'asc') after = numbers.at(-1) ?? end;
    else end = numbers[0] ?? 0;
  }
}

const inOrder = <T>(items: T[], order: SearchRange['order']): T[] => (order === 'asc' ? items : items.reverse());

function* findIndexed(db: Database, wanted: CallCriteria, { from, before, order }: SearchRange): Generator<number> {
  const statement = prepare(
    db.connection,
    build
      .selectFrom('call_index')
      .select('cells')
      .where('last', '=', bind<number>('last'))
      .where('name', '=', bind<string>('name'))
      .compile(),
  );
  /** Retention may have deleted the block meanwhile. */
  const read = (last: number, name: string): Buffer => statement.get({ last, name })?.cells ?? Buffer.alloc(0);
  for (const last of inOrder(blocksOf(db, from, before), order)) {
    const places = placesIn(wanted, BLOCK, (name) => cellsIn(read(last, name)));
    if (places.length === 0) continue;
    const numbers = numbersIn(read(last, 'numbers'));
    for (const place of inOrder(places, order)) {
      const number = numbers[place] ?? 0;
      if (number >= from && number < before) yield number;
    }
  }
}

/** The blocks that reach into a range of numbers, earliest first. */
function blocksOf(db: Database, from: number, before: number): number[] {
  const rows = db.all(
    build
      .selectFrom('call_index')
      .select('last')
      .where('name', '=', 'numbers')
      .where('last', '>=', from)
      .orderBy('last'),
  );
  const lasts = rows.map(({ last }) => last);
  // The first that ends at or after the range's end holds what is before that end.
  const end = lasts.findIndex((last) => last >= before);
  return end === -1 ? lasts : lasts.slice(0, end + 1);
}

/**
 * The number of a call of the organization; undefined when it has none of this id. It stands within a minute of the time in its id, or
 * among the few that the index names as displaced, or that are not in the index yet. Not for the serving thread.
 * @param id of the call or of its decision
 */
export function findNumber(db: Database, organizationId: string, id: string): number | undefined {
  const ofId = build
    .selectFrom('ledger')
    .innerJoin('call_origins', 'call_origins.id', 'ledger.origin')
    .where('call_origins.organizationId', '=', organizationId)
    .where('ledger.id', '=', bytesOfId(id))
    .select('ledger.number')
    .orderBy('ledger.number')
    .limit(1);
  const [first, end] = [earliestNumber(id), endOfNear(id)];
  const near = db.get(ofId.where('ledger.number', '>=', first).where('ledger.number', '<', end));
  if (near !== undefined) return near.number;
  const displaced = displacedFrom(db, end);
  const later = displaced.length === 0 ? undefined : db.get(ofId.where('ledger.number', 'in', displaced));
  if (later !== undefined) return later.number;
  return db.get(ofId.where('ledger.number', '>', Math.max(findLastIndexed(db), end)))?.number;
}

/** Numbers, from one on, of calls in the index that stand far behind the time in their id. */
const displacedFrom = (db: Database, first: number): number[] =>
  db
    .all(build.selectFrom('call_index').select('cells').where('name', '=', 'displaced').where('last', '>=', first))
    .flatMap(({ cells }) => [...numbersIn(cells)]);
