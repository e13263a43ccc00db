import { type AddressRange, formatAddress, parseAddress } from '../../domain/address.ts';

/** Addresses from `first` to `last`, both included. */
export interface Interval {
  readonly first: bigint;
  readonly last: bigint;
}

/** Client addresses, the unknown one included: for each family intervals in order that neither overlap nor touch. */
export interface AddressSet {
  readonly v4: readonly Interval[];
  readonly v6: readonly Interval[];
  readonly unknown: boolean;
}

/** Addresses that no IP rule among those involved tells apart. */
export interface AddressClass {
  /** One of them, in canonical form; null: the unknown address. */
  readonly representative: string | null;
  readonly addresses: AddressSet;
}

type Family = 4 | 6;

const LAST: Readonly<Record<Family, bigint>> = { 4: (1n << 32n) - 1n, 6: (1n << 128n) - 1n };
/** The IPv4-mapped block: addresses in it are IPv4, so no client has one. */
const MAPPED: Interval = { first: 0xffffn << 32n, last: (0x10000n << 32n) - 1n };
const V6 = [
  { first: 0n, last: MAPPED.first - 1n },
  { first: MAPPED.last + 1n, last: LAST[6] },
];

export const EVERY_ADDRESS: AddressSet = { v4: [{ first: 0n, last: LAST[4] }], v6: V6, unknown: true };
export const NO_ADDRESS: AddressSet = { v4: [], v6: [], unknown: false };
const UNKNOWN: AddressSet = { ...NO_ADDRESS, unknown: true };

/**
 * Splits all addresses by the ends of the ranges (facts: n ranges, at most 2n+1 classes of a family, and the unknown address):
 * a decision is the same for every address of a class, so that one representative is exact.
 */
export function addressClasses(ranges: readonly AddressRange[]): AddressClass[] {
  return [...classesOf(4, ranges), ...classesOf(6, ranges), { representative: null, addresses: UNKNOWN }];
}

/** The known addresses among canonical texts. */
export const addressesOf = (texts: readonly string[]): AddressSet => {
  const known = texts.flatMap((text) => parseAddress(text) ?? []);
  const of = (family: Family): Interval[] =>
    joined(known.flatMap((each) => (each.family === family ? [{ first: each.value, last: each.value }] : [])));
  return { v4: of(4), v6: of(6), unknown: false };
};

function classesOf(family: Family, ranges: readonly AddressRange[]): AddressClass[] {
  const starts = new Set<bigint>();
  for (const range of ranges) {
    if (range.family !== family) continue;
    const { first, last } = intervalOf(range);
    starts.add(first).add(last + 1n);
  }
  const sorted = [...starts].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const parts = family === 4 ? EVERY_ADDRESS.v4 : V6;
  return parts.flatMap((part) =>
    split(part, sorted).map((interval) => ({
      representative: formatAddress({ family, value: interval.first }),
      addresses: family === 4 ? { ...NO_ADDRESS, v4: [interval] } : { ...NO_ADDRESS, v6: [interval] },
    })),
  );
}

export function intervalOf({ family, network, prefix }: AddressRange): Interval {
  const size = 1n << ((family === 4 ? 32n : 128n) - BigInt(prefix));
  return { first: network, last: network + size - 1n };
}

function split({ first, last }: Interval, sortedStarts: readonly bigint[]): Interval[] {
  const firsts = [first, ...sortedStarts.filter((start) => start > first && start <= last)];
  return firsts.map((start, index) => ({ first: start, last: (firsts[index + 1] ?? last + 1n) - 1n }));
}

export const isEmpty = ({ v4, v6, unknown }: AddressSet): boolean => v4.length === 0 && v6.length === 0 && !unknown;

export function union(sets: readonly AddressSet[]): AddressSet {
  return {
    v4: joined(sets.flatMap(({ v4 }) => v4)),
    v6: joined(sets.flatMap(({ v6 }) => v6)),
    unknown: sets.some(({ unknown }) => unknown),
  };
}

function joined(intervals: readonly Interval[]): Interval[] {
  const result: Interval[] = [];
  for (const next of intervals.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0))) {
    const previous = result.at(-1);
    if (previous === undefined || next.first > previous.last + 1n) result.push(next);
    else if (next.last > previous.last) result[result.length - 1] = { first: previous.first, last: next.last };
  }
  return result;
}

export function intersect(a: AddressSet, b: AddressSet): AddressSet {
  return { v4: common(a.v4, b.v4), v6: common(a.v6, b.v6), unknown: a.unknown && b.unknown };
}

function common(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const result: Interval[] = [];
  for (let i = 0, j = 0; ; ) {
    const [left, right] = [a[i], b[j]];
    if (left === undefined || right === undefined) return result;
    const first = left.first > right.first ? left.first : right.first;
    const last = left.last < right.last ? left.last : right.last;
    if (first <= last) result.push({ first, last });
    if (left.last < right.last) i += 1;
    else j += 1;
  }
}

/** Addresses in `a` that are not in `b`. */
export const subtract = (a: AddressSet, b: AddressSet): AddressSet => intersect(a, complement(b));

function complement({ v4, v6, unknown }: AddressSet): AddressSet {
  return { v4: gaps(v4, LAST[4]), v6: gaps(v6, LAST[6]), unknown: !unknown };
}

function gaps(intervals: readonly Interval[], end: bigint): Interval[] {
  const result: Interval[] = [];
  let next = 0n;
  for (const { first, last } of intervals) {
    if (first > next) result.push({ first: next, last: first - 1n });
    next = last + 1n;
  }
  if (next <= end) result.push({ first: next, last: end });
  return result;
}

/**
 * The set as texts: ranges (`10.0.0.0/8`), where no single range says it `first-last`, and `unknown`. Everything is
 * `0.0.0.0/0`, `::/0`, `unknown`.
 */
export function formatAddresses({ v4, v6, unknown }: AddressSet): string[] {
  return [
    ...v4.map((interval) => formatInterval(4, interval)),
    ...joined(acrossMappedBlock(v6)).map((interval) => formatInterval(6, interval)),
    ...(unknown ? ['unknown'] : []),
  ];
}

/** Nobody has an address in the mapped block: intervals on both sides of it read as one. */
function acrossMappedBlock(intervals: readonly Interval[]): readonly Interval[] {
  const touches =
    intervals.some(({ last }) => last === MAPPED.first - 1n) &&
    intervals.some(({ first }) => first === MAPPED.last + 1n);
  return touches ? [...intervals, MAPPED] : intervals;
}

/** The fewest CIDR ranges that hold exactly these addresses; the unknown one is in none. */
export const formatRanges = ({ v4, v6 }: AddressSet): string[] => [
  ...v4.flatMap((interval) => rangesOf(4, interval)),
  ...v6.flatMap((interval) => rangesOf(6, interval)),
];

function rangesOf(family: Family, { first, last }: Interval): string[] {
  const ranges: string[] = [];
  for (let next = first; next <= last; ) {
    let [size, prefix] = [1n, family === 4 ? 32 : 128];
    while (next % (size * 2n) === 0n && next + size * 2n - 1n <= last) {
      size *= 2n;
      prefix -= 1;
    }
    ranges.push(`${formatAddress({ family, value: next })}/${prefix}`);
    next += size;
  }
  return ranges;
}

function formatInterval(family: Family, { first, last }: Interval): string {
  const size = last - first + 1n;
  const from = formatAddress({ family, value: first });
  const isRange = (size & (size - 1n)) === 0n && first % size === 0n;
  if (!isRange) return `${from}-${formatAddress({ family, value: last })}`;
  return `${from}/${(family === 4 ? 33 : 129) - size.toString(2).length}`;
}
