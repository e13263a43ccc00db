/** The oracle's own address arithmetic: every address is a version and a number, every range a number of leading bits. */

export interface Address {
  readonly bits: 32 | 128;
  readonly value: bigint;
}

interface Range extends Address {
  readonly prefix: number;
}

/** The ranges that hold the address, in canonical form. Expects valid text: rules are validated when they are written. */
export function rangesAround(address: string, ranges: readonly string[]): string[] {
  const client = unmapped({ ...parseAddress(address), prefix: 128 });
  const parsed = ranges.map((text) => {
    const [network = '', prefix = ''] = text.split('/');
    return unmapped({ ...parseAddress(network), prefix: Number(prefix) });
  });
  return parsed.filter((range) => contains(range, client)).map(formatRange);
}

/** "IPv6 ranges wider than the IPv4-mapped block (`::/0`) are IPv6 only, never match an IPv4 client." */
function contains(range: Range, address: Address): boolean {
  const ignored = BigInt(range.bits - range.prefix);
  return range.bits === address.bits && range.value >> ignored === address.value >> ignored;
}

/** "IPv4-mapped ranges as IPv4", "IPv4-mapped IPv6 is IPv4, at writing and at deciding". */
function unmapped(range: Range): Range {
  const isMapped = range.bits === 128 && range.prefix >= 96 && range.value >> 32n === 0xffffn;
  return isMapped ? { bits: 32, value: range.value & 0xffffffffn, prefix: range.prefix - 96 } : range;
}

/** "In canonical form (host bits cleared, [...])." */
function formatRange({ bits, value, prefix }: Range): string {
  const hostBits = BigInt(bits - prefix);
  return `${formatAddress({ bits, value: (value >> hostBits) << hostBits })}/${prefix}`;
}

export function parseAddress(text: string): Address {
  if (!text.includes(':')) return { bits: 32, value: joinGroups(text.split('.'), 10, 8n) };
  // A dotted tail is two groups of hexadecimal digits.
  const dotted = /[^:]+\.[^:]+$/.exec(text)?.[0];
  const tail = dotted === undefined ? 0n : joinGroups(dotted.split('.'), 10, 8n);
  const hex =
    dotted === undefined
      ? text
      : text.replace(dotted, `${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`);
  const [left, right] = hex.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const missing = 8 - (left?.length ?? 0) - (right?.length ?? 0);
  const groups = [...(left ?? []), ...Array.from({ length: missing }, () => '0'), ...(right ?? [])];
  return { bits: 128, value: joinGroups(groups, 16, 16n) };
}

function joinGroups(groups: readonly string[], radix: number, width: bigint): bigint {
  return groups.reduce((value, group) => (value << width) | BigInt(Number.parseInt(group, radix)), 0n);
}

/** Dotted decimals, or RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as `::`. */
export function formatAddress({ bits, value }: Address): string {
  const [count, width] = bits === 32 ? [4, 8n] : [8, 16n];
  const groups = Array.from(
    { length: count },
    (_, i) => (value >> (BigInt(count - 1 - i) * width)) & ((1n << width) - 1n),
  );
  if (bits === 32) return groups.join('.');
  for (let length = 8; length >= 2; length--) {
    for (let start = 0; start + length <= 8; start++) {
      if (groups.slice(start, start + length).some((group) => group !== 0n)) continue;
      const half = (part: bigint[]) => part.map((group) => group.toString(16)).join(':');
      return `${half(groups.slice(0, start))}::${half(groups.slice(start + length))}`;
    }
  }
  return groups.map((group) => group.toString(16)).join(':');
}
