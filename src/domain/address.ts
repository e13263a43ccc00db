import { isIPv4, isIPv6 } from 'node:net';

export interface Address {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** A CIDR range in canonical form: host bits cleared, a range inside the IPv4-mapped block as IPv4. */
export interface AddressRange {
  readonly family: 4 | 6;
  readonly network: bigint;
  readonly prefix: number;
}

/** A range is not what `canonicalCidr` accepts; the message names the fault and the text. */
export class InvalidRangeError extends Error {
  override readonly name = 'InvalidRangeError';
}

const BITS = { 4: 32, 6: 128 } as const;
/** `::ffff:0:0/96`: IPv4 addresses written as IPv6. */
const MAPPED_BLOCK = 0xffffn << 32n;

/**
 * The canonical text of an address (RFC 5952; IPv4-mapped IPv6 as IPv4), or null when the text is anything but a plain
 * address: leading zeros, brackets, ports, zone ids and surrounding blanks are refused.
 */
export function canonicalAddress(text: string): string | null {
  if (isIPv4(text)) return text; // has one spelling
  const address = parseAddress(text);
  return address === null ? null : formatAddress(address);
}

/**
 * The canonical text of a range, always with its prefix (policy/reference.md, "IAM rules").
 * @throws InvalidRangeError naming the fault.
 */
export const canonicalCidr = (text: string): string => formatRange(parseRange(text));

/** The canonical text of a range. */
export const formatRange = ({ family, network, prefix }: AddressRange): string =>
  `${formatAddress({ family, value: network })}/${prefix}`;

/** A range from its text. @throws InvalidRangeError naming the fault. */
export function parseRange(text: string): AddressRange {
  const slash = text.indexOf('/');
  if (slash < 0) throw new InvalidRangeError(`"${text}" has no prefix length; a single address ends in /32 or /128.`);
  const literal = parseLiteral(text.slice(0, slash));
  if (literal === null) throw new InvalidRangeError(`"${text}" does not begin with an IPv4 or IPv6 address.`);
  const digits = text.slice(slash + 1);
  const prefix = Number(digits);
  if (!/^(0|[1-9][0-9]{0,2})$/.test(digits) || prefix > BITS[literal.family]) {
    throw new InvalidRangeError(`"${text}" must end in a prefix length from 0 to ${BITS[literal.family]}.`);
  }
  const network = clearHostBits(literal, prefix);
  if (literal.family === 6 && prefix >= 96 && isMapped(network)) {
    return { family: 4, network: network - MAPPED_BLOCK, prefix: prefix - 96 };
  }
  return { family: literal.family, network, prefix };
}

/** A range, or the one of a single address. @throws InvalidRangeError naming the fault */
export function parseAddressOrRange(text: string): AddressRange {
  if (text.includes('/')) return parseRange(text);
  const address = parseAddress(text);
  if (address === null) throw new InvalidRangeError(`"${text}" is neither an IP address nor a CIDR range.`);
  return { family: address.family, network: address.value, prefix: BITS[address.family] };
}

/** True for an IPv6 range wider than the IPv4-mapped block: it looks as if it held every IPv4 client, and holds none. */
export function coversMappedBlock(range: AddressRange): boolean {
  return (
    range.family === 6 &&
    range.prefix < 96 &&
    clearHostBits({ family: 6, value: MAPPED_BLOCK }, range.prefix) === range.network
  );
}

/** Ranges of `TRUSTED_PROXIES`, by `parseRange`; empty for `none`. */
export type TrustedProxies = readonly AddressRange[];

interface AddressSources {
  /** The `X-Forwarded-For` header, repeated lines joined by commas. */
  readonly forwardedFor: string | undefined;
  /** The peer of the connection. */
  readonly socketAddress: string | undefined;
  /** Undefined while `TRUSTED_PROXIES` is unset. */
  readonly trustedProxies: TrustedProxies | undefined;
}

/**
 * The client's canonical address, or null when it cannot be determined (policy/reference.md, "Client address"). Without
 * trusted proxies the first entry of the header counts; with them the chain is walked from the socket over trusted hops.
 */
export function clientAddress({ forwardedFor, socketAddress, trustedProxies }: AddressSources): string | null {
  if (trustedProxies === undefined) return canonicalAddress(firstEntry(forwardedFor ?? ''));
  let hop = parseAddress(socketAddress ?? '');
  for (const entry of entriesFromTheRight(forwardedFor)) {
    if (hop === null || !isTrusted(trustedProxies, hop)) break;
    hop = parseAddress(entry);
  }
  return hop === null ? null : formatAddress(hop);
}

function firstEntry(list: string): string {
  const comma = list.indexOf(',');
  return withoutBlanks(comma === -1 ? list : list.slice(0, comma));
}

function* entriesFromTheRight(list: string | undefined): Generator<string> {
  let rest = list;
  while (rest !== undefined) {
    const comma = rest.lastIndexOf(',');
    yield withoutBlanks(rest.slice(comma + 1));
    rest = comma === -1 ? undefined : rest.slice(0, comma);
  }
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t';

/** Without spaces and tabs around it. */
function withoutBlanks(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isBlank(text[start])) start += 1;
  while (start < end && isBlank(text[end - 1])) end -= 1;
  return text.slice(start, end);
}

/**
 * Network that counts as one caller without a key: an IPv4 address, or the /64 of an IPv6 address, in which one subscriber has
 * as many addresses as they want. Text that is not an address stands for itself.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  if (parsed.family === 4) return formatAddress(parsed);
  return `${formatAddress({ family: 6, value: clearHostBits(parsed, 64) })}/64`;
}

const isTrusted = (ranges: TrustedProxies, address: Address): boolean =>
  ranges.some((range) => contains(range, address));

/** Whether the address is one of the range. */
export const contains = (range: AddressRange, address: Address): boolean =>
  address.family === range.family && clearHostBits(address, range.prefix) === range.network;

/** The address of a text, an IPv4-mapped one as IPv4; null when it is none. */
export function parseAddress(text: string): Address | null {
  const literal = parseLiteral(text);
  if (literal?.family === 6 && isMapped(literal.value)) return { family: 4, value: literal.value - MAPPED_BLOCK };
  return literal;
}

/** Characters of the longest text of an address: six groups and an IPv4 address. */
const LONGEST = 45;

/** The address as written, IPv4-mapped addresses still IPv6, because a prefix length counts the bits as written. */
function parseLiteral(text: string): Address | null {
  if (text.length > LONGEST) return null;
  if (isIPv4(text)) return { family: 4, value: BigInt(ipv4Number(text)) };
  if (!isIPv6(text) || text.includes('%')) return null;
  const last = text.slice(text.lastIndexOf(':') + 1);
  const low = last.includes('.') ? ipv4Number(last) : undefined;
  const hex =
    low === undefined
      ? text
      : `${text.slice(0, -last.length)}${(low >>> 16).toString(16)}:${(low & 0xffff).toString(16)}`;
  const [head = '', tail] = hex.split('::');
  const before = groupsOf(head);
  const after = tail === undefined ? [] : groupsOf(tail);
  const groups = [...before, ...new Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return { family: 6, value: BigInt(`0x${groups.map((group) => group.padStart(4, '0')).join('')}`) };
}

const groupsOf = (text: string): string[] => (text === '' ? [] : text.split(':'));

const ipv4Number = (text: string): number => text.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);

/** The canonical text of an address. */
export function formatAddress({ family, value }: Address): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  const groups = (value.toString(16).padStart(32, '0').match(/.{4}/g) ?? []).map((group) =>
    group.replace(/^0{1,3}/, ''),
  );
  const zeros = longestZeroRun(groups);
  if (zeros.length < 2) return groups.join(':');
  return `${groups.slice(0, zeros.start).join(':')}::${groups.slice(zeros.start + zeros.length).join(':')}`;
}

/** The first of the longest runs of zero groups (RFC 5952, section 4.2). */
function longestZeroRun(groups: readonly string[]): { start: number; length: number } {
  let longest = { start: 0, length: 0 };
  let length = 0;
  for (const [index, group] of groups.entries()) {
    length = group === '0' ? length + 1 : 0;
    if (length > longest.length) longest = { start: index - length + 1, length };
  }
  return longest;
}

const isMapped = (value: bigint): boolean => value >> 32n === 0xffffn;

function clearHostBits({ family, value }: Address, prefix: number): bigint {
  const hostBits = BigInt(BITS[family] - prefix);
  return (value >> hostBits) << hostBits;
}

/** A host with a port as `ALLOW_PRIVATE_UPSTREAMS` names it: `host:port`, lower case, an IPv6 address in brackets. */
export type Endpoint = string;

/** @param hostname as a parsed URL has it; the brackets of an IPv6 address may be missing. */
export const endpointOf = (hostname: string, port: number): Endpoint =>
  `${isIPv6(hostname) ? `[${hostname}]` : hostname.toLowerCase()}:${port}`;

/** Endpoint of a URL; the port of its scheme when the URL names none. */
export const endpointOfUrl = ({ protocol, hostname, port }: URL): Endpoint =>
  endpointOf(hostname, port === '' ? schemePort(protocol) : Number(port));

export const schemePort = (protocol: string): number => (protocol === 'https:' ? 443 : 80);

/**
 * One entry of the list, spelled as a URL spells it afterwards (`0x7f.1:80` becomes `127.0.0.1:80`), so that it can be compared.
 * @throws Error for anything else than a host and a port
 */
export function parseEndpoint(text: string): Endpoint {
  const [, host = '', port = ''] = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})$/.exec(text) ?? [];
  const number = Number(port);
  if (number < 1 || number > 65_535 || !URL.canParse(`http://${host}`)) {
    throw new Error(`"${text}" is not a host name or an IP address with a port.`);
  }
  return endpointOf(new URL(`http://${host}`).hostname, number);
}
