import { describe, expect, it } from 'vitest';
import { parseEndpoint } from '../../src/domain/address.ts';
import {
  type AddressPolicy,
  createLookUps,
  guardedConnector,
  isPublicAddress,
  type Resolve,
} from '../../src/net/address-policy.ts';
import { serve } from './loopback-server.ts';

describe('isPublicAddress', () => {
  it.each(['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '192.169.0.1', '2606:4700:4700::1111', '2a00:1450::1'])(
    'takes %s',
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it.each([
    ['loopback', '127.0.0.1'],
    ['loopback', '127.255.255.254'],
    ['loopback', '::1'],
    ['unspecified', '0.0.0.0'],
    ['unspecified', '::'],
    ['private', '10.1.2.3'],
    ['private', '172.31.255.255'],
    ['private', '192.168.1.1'],
    ['private', 'fd00::1'],
    ['shared', '100.64.0.1'],
    ['link-local', '169.254.0.1'],
    ['link-local', 'fe80::1'],
    ['metadata', '169.254.169.254'],
    ['metadata', 'fd00:ec2::254'],
    ['metadata', '100.100.100.200'],
    ['metadata', '168.63.129.16'],
    ['benchmark', '198.18.0.1'],
    ['multicast', '224.0.0.1'],
    ['multicast', 'ff02::1'],
    ['broadcast', '255.255.255.255'],
    ['IPv4-mapped', '::ffff:127.0.0.1'],
    ['IPv4-mapped', '::ffff:8.8.8.8'],
    ['NAT64', '64:ff9b::7f00:1'],
    ['6to4', '2002:7f00:1::'],
    ['Teredo', '2001:0:4136:e378::1'],
    ['documentation', '2001:db8::1'],
    ['documentation', '192.0.2.1'],
    ['no address', 'example.com'],
    ['no address', ''],
  ])('refuses the %s address %s', (_kind, address) => expect(isPublicAddress(address)).toBe(false));
});

describe('the connector', () => {
  interface Wanted {
    readonly policy?: AddressPolicy;
    readonly exceptions?: readonly string[];
    /** What every name resolves to. */
    readonly addresses?: readonly string[];
  }

  /** The outcome of a connection to this URL: the address that was reached, or why none was. */
  function connectTo(target: string, { policy = 'public', exceptions = [], addresses = [] }: Wanted): Promise<string> {
    const { hostname, host, protocol, port } = new URL(target);
    const resolve: Resolve = (_hostname, _options, callback) =>
      callback(
        null,
        addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    const connect = guardedConnector(policy, { timeoutMs: 5000, exceptions, resolve });
    const bare = hostname.replace(/^\[(.*)\]$/, '$1');
    return new Promise((settle) => {
      connect({ hostname: bare, host, protocol, port }, (error, socket) => {
        settle(error === null ? (socket.remoteAddress ?? '') : error.message);
        socket?.destroy();
      });
    });
  }

  const REFUSED = 'the address is not public';

  it.each([
    'http://127.0.0.1:8080',
    'http://2130706433:8080',
    'http://0x7f000001:8080',
    'http://0177.0.0.1:8080',
    'http://127.1:8080',
    'http://0:8080',
    'http://[::1]:8080',
    'http://[::ffff:127.0.0.1]:8080',
    'http://[::ffff:7f00:1]:8080',
    'http://[64:ff9b::7f00:1]:8080',
    'http://169.254.169.254',
    'http://2852039166',
    'http://[fd00:ec2::254]',
    'https://10.0.0.1',
    'https://172.16.0.1',
    'https://192.168.1.1',
    'https://[fe80::1]',
  ])('refuses %s', async (target) => {
    expect(await connectTo(target, {})).toBe(REFUSED);
  });

  it.each([['127.0.0.1'], ['10.0.0.1', '169.254.169.254'], ['::1'], ['::ffff:10.0.0.1']])(
    'refuses a name that resolves to %s alone',
    async (...addresses) => {
      expect(await connectTo('https://models.example', { addresses })).toBe(REFUSED);
    },
  );

  it('opens to an exception exactly the host and port that it names', async () => {
    const { port } = new URL(await serve((_request, response) => response.end()));
    const reached = (host: string, exception: string) =>
      connectTo(`http://${host}:${port}`, { exceptions: [parseEndpoint(exception)], addresses: ['127.0.0.1'] });
    expect(await reached('127.0.0.1', `127.0.0.1:${port}`)).toBe('127.0.0.1');
    expect(await reached('0x7f.1', `127.0.0.1:${port}`)).toBe('127.0.0.1');
    expect(await reached('LOCALHOST', `LocalHost:${port}`)).toBe('127.0.0.1');
    expect(await reached('127.0.0.1', '127.0.0.1:1')).toBe(REFUSED);
    expect(await reached('127.0.0.1', `localhost:${port}`)).toBe(REFUSED);
    expect(await reached('localhost', `127.0.0.1:${port}`)).toBe(REFUSED);
    expect(await reached('a.localhost', `localhost:${port}`)).toBe(REFUSED);
    expect(await reached('127.0.0.1', `127.0.0.2:${port}`)).toBe(REFUSED);
  });

  it('takes the port of the scheme when an exception names it', async () => {
    const refusedByHost = /ECONNREFUSED/;
    const exceptions = [parseEndpoint('127.0.0.1:443')];
    expect(await connectTo('https://127.0.0.1', { exceptions })).toMatch(refusedByHost);
    expect(await connectTo('http://127.0.0.1', { exceptions })).toBe(REFUSED);
  });

  it('reaches whatever the operator named', async () => {
    const { port } = new URL(await serve((_request, response) => response.end()));
    expect(await connectTo(`http://127.0.0.1:${port}`, { policy: 'trusted' })).toBe('127.0.0.1');
  });
});

describe('look-ups of names', () => {
  /** Look-ups that end when the test says so; the names that the system was asked for, and those that were answered. */
  function begin(maxWaitMs = 60_000) {
    const asked: string[] = [];
    const answered: string[] = [];
    const failed: string[] = [];
    const ends = new Map<string, () => void>();
    const lookUps = createLookUps(maxWaitMs, (hostname, _options, callback) => {
      asked.push(hostname);
      ends.set(hostname, () => callback(null, [{ address: '127.0.0.1', family: 4 }]));
    });
    const want = (share: string, hostname: string): void =>
      lookUps(() => share)(hostname, { all: true }, (error, [first]) => {
        if (error === null) answered.push(`${share} ${hostname} ${first?.address}`);
        else failed.push(`${share} ${hostname}: ${error.message}`);
      });
    const end = async (hostname: string): Promise<void> => {
      ends.get(hostname)?.();
      await new Promise(setImmediate);
    };
    return { asked, answered, failed, want, end };
  }

  it('of an organization whose names never answer leave those of the others as they were', async () => {
    const { asked, answered, want, end } = begin();
    for (let i = 0; i < 20; i += 1) want('attacker', `hangs-${i}.example`);
    for (let i = 0; i < 20; i += 1) want('strangers', `documents-${i}.example`);
    want('victim', 'models.example');
    expect(asked).toEqual([
      'hangs-0.example',
      'hangs-1.example',
      'documents-0.example',
      'documents-1.example',
      'models.example',
    ]);
    await end('models.example');
    expect(answered).toEqual(['victim models.example 127.0.0.1']);
    await end('hangs-0.example');
    expect(asked.slice(5)).toEqual(['hangs-2.example']);
  });

  it('of one name are one, for each organization, however many connections want it', async () => {
    const { asked, answered, want, end } = begin();
    for (let i = 0; i < 500; i += 1) want('attacker', 'hangs.example');
    want('attacker', 'models.example');
    want('victim', 'hangs.example');
    expect(asked).toEqual(['hangs.example', 'models.example', 'hangs.example']);
    await end('models.example');
    expect(answered).toEqual(['attacker models.example 127.0.0.1']);
    want('attacker', 'models.example');
    expect(asked).toHaveLength(4);
  });

  it('that wait in vain, or are too many, fail', async () => {
    const { asked, failed, want } = begin(20);
    for (let i = 0; i < 80; i += 1) want('attacker', `hangs-${i}.example`);
    await expect.poll(() => failed.length).toBe(78);
    expect([asked.length, failed[0]]).toEqual([
      2,
      'attacker hangs-66.example: too many names of this organization are being looked up',
    ]);
  });
});

describe('an endpoint', () => {
  it.each([
    ['Ollama.Internal:11434', 'ollama.internal:11434'],
    ['2130706433:80', '127.0.0.1:80'],
    ['[0:0:0::1]:443', '[::1]:443'],
    ['[::FFFF:127.0.0.1]:1', '[::ffff:7f00:1]:1'],
  ])('%s is compared as %s', (text, endpoint) => expect(parseEndpoint(text)).toBe(endpoint));

  it.each(['host', 'host:', 'host:0', 'host:65536', '::1:80', '[::1]', 'http://host:80', 'a b:80', '999.1.1.1:80', ''])(
    'is not "%s"',
    (text) => expect(() => parseEndpoint(text)).toThrow(`"${text}" is not a host name or an IP address with a port.`),
  );
});
