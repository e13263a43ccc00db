import { lookup as dnsLookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { type Endpoint, endpointOf, schemePort } from '../domain/address.ts';
import { Turns } from '../domain/turns.ts';
import { getOrMake } from '../lib/collections.ts';
import { TransportError } from './transport-error.ts';

/**
 * Addresses that a request may connect to: `trusted` anywhere (the operator named it), `public` only global unicast addresses
 * and exceptions.
 */
export type AddressPolicy = 'trusted' | 'public';

const V4_RESERVED = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['168.63.129.16', 32], // a cloud's metadata service on a public address
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const;

/** Inside 2000::/3, the only block of IPv6 that is global unicast: what tunnels to IPv4 or is no address of a host. */
const V6_RESERVED = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const;

const v4Reserved = new BlockList();
for (const [net, prefix] of V4_RESERVED) v4Reserved.addSubnet(net, prefix, 'ipv4');
const v6Global = new BlockList();
v6Global.addSubnet('2000::', 3, 'ipv6');
const v6Reserved = new BlockList();
for (const [net, prefix] of V6_RESERVED) v6Reserved.addSubnet(net, prefix, 'ipv6');

/** True for a global unicast address; false for anything else: loopback, private, link-local, metadata, mapped, malformed. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !v4Reserved.check(address, 'ipv4');
  return family === 6 && v6Global.check(address, 'ipv6') && !v6Reserved.check(address, 'ipv6');
}

const refused = (): TransportError => new TransportError('connection', 'the address is not public');

/** All addresses of a name, as `lookup` of node:dns gives them. */
export type Resolve = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Look-ups of names that callers choose. The operator's own are not among them, and get the other part of libuv's threads. */
const CHOSEN_LOOK_UPS = { atOnce: 6, atOnceEach: 2, maxWaiting: 512, maxWaitingEach: 64 } as const;

/** Looks up names on behalf of a share: an organization, or all strangers. */
export type LookUps = (share: () => string) => Resolve;

/**
 * The system looks a name up on one of libuv's threads, for half a minute where the name's server does not answer, and half of the threads
 * are for that: each share gets two at once, and one name takes one of them however many connections want it.
 * @param resolve default: `lookup` of node:dns
 */
export function createLookUps(maxWaitMs: number, resolve: Resolve = dnsLookup): LookUps {
  const turns = new Turns({ what: 'look-ups of names', ...CHOSEN_LOOK_UPS, maxWaitMs });
  const running = new Map<string, Promise<Found>>();
  const found = (hostname: string, options: LookupAllOptions): Promise<Found> =>
    new Promise((done) => resolve(hostname, options, (error, addresses) => done({ error, addresses })));
  return (shareOf) => (hostname, options, callback) => {
    const share = shareOf();
    const asked = JSON.stringify([share, hostname, options]);
    const looking = getOrMake<string, Promise<Found>>(running, asked, () =>
      turns
        .take(share, () => found(hostname, options))
        .catch((cause: unknown): Found => ({ error: tooMany(cause), addresses: [] }))
        .finally(() => running.delete(asked)),
    );
    void looking.then(({ error, addresses }) => callback(error, addresses));
  };
}

interface Found {
  readonly error: NodeJS.ErrnoException | null;
  readonly addresses: LookupAddress[];
}

const tooMany = (cause: unknown): TransportError =>
  new TransportError('connection', 'too many names of this organization are being looked up', { cause });

/**
 * Resolves a name and hands on its public addresses only: the connection is made to an address that was judged, so that no
 * second answer of the name's server can lead elsewhere.
 */
const publicLookup =
  (resolve: Resolve): LookupFunction =>
  (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      const permitted = error === null ? addresses.filter(({ address }) => isPublicAddress(address)) : [];
      const [first] = permitted;
      if (first === undefined) callback(error ?? refused(), options.all === true ? [] : '');
      else if (options.all === true) callback(null, permitted);
      else callback(null, first.address, first.family);
    });
  };

export interface ConnectorOptions {
  readonly timeoutMs: number;
  /** Endpoints that `public` may also reach: single private hosts that the operator has opened. */
  readonly exceptions: readonly Endpoint[];
  /** Default: `lookup` of node:dns. */
  readonly resolve?: Resolve;
}

/** The connector of a pool: judges a literal address before, and the addresses of a name while, it connects. */
export function guardedConnector(policy: AddressPolicy, options: ConnectorOptions): buildConnector.connector {
  const { timeoutMs, exceptions, resolve = dnsLookup } = options;
  const base = { timeout: timeoutMs, allowH2: false };
  const anywhere = buildConnector(base);
  if (policy === 'trusted') return anywhere;
  const guarded = buildConnector({ ...base, lookup: publicLookup(resolve) });
  return (target, callback) => {
    const { hostname, port, protocol } = target;
    if (exceptions.includes(endpointOf(hostname, Number(port) || schemePort(protocol)))) {
      anywhere(target, callback);
    } else if (isIP(hostname) !== 0 && !isPublicAddress(hostname)) {
      queueMicrotask(() => callback(refused(), null));
    } else {
      guarded(target, callback);
    }
  };
}
