import { describe, expect, test } from 'vitest';
import {
  canonicalAddress,
  canonicalCidr,
  clientAddress,
  coversMappedBlock,
  InvalidRangeError,
  parseRange,
} from '../../src/domain/address.ts';

describe('an address', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['0.0.0.0', '0.0.0.0'],
    ['255.255.255.255', '255.255.255.255'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:C000:0201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001', '2001:db8::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:0:0:2:3:0:0:4', '1::2:3:0:0:4'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['::192.0.2.1', '::c000:201'],
    ['64:ff9b::192.0.2.1', '64:ff9b::c000:201'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalAddress(text)).toBe(canonical);
  });

  test.each([
    [''],
    [' 192.0.2.1'],
    ['192.0.2.1 '],
    ['192.0.2.01'],
    ['0xc0.0.2.1'],
    ['192.0.513'],
    ['3221225985'],
    ['192.0.2.256'],
    ['192.0.2.1.'],
    ['192.0.2.1:443'],
    ['[::1]'],
    ['[::1]:443'],
    ['fe80::1%eth0'],
    ['::ffff:192.0.2.01'],
    ['::1::'],
    ['1:2:3:4:5:6:7'],
    ['12345::'],
    ['::g'],
    ['"192.0.2.1"'],
    ['unknown'],
    ['localhost'],
    ['192.0.2.1/32'],
    ['\u0661.0.0.1'],
  ])('%j is none', (text) => {
    expect(canonicalAddress(text)).toBeNull();
  });
});

describe('a range', () => {
  test.each([
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['192.0.2.1/32', '192.0.2.1/32'],
    ['192.0.2.1/0', '0.0.0.0/0'],
    ['2001:DB8::1/32', '2001:db8::/32'],
    ['2001:db8::1/128', '2001:db8::1/128'],
    ['::/0', '::/0'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::ffff:10.1.2.3/128', '10.1.2.3/32'],
    ['::ffff:0:0/95', '::fffe:0:0/95'],
    ['::fffe:0:0/96', '::fffe:0:0/96'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalCidr(text)).toBe(canonical);
  });

  test.each([
    ['192.0.2.1', '"192.0.2.1" has no prefix length; a single address ends in /32 or /128.'],
    ['10.0.0.0/33', '"10.0.0.0/33" must end in a prefix length from 0 to 32.'],
    ['::/129', '"::/129" must end in a prefix length from 0 to 128.'],
    ['10.0.0.0/', '"10.0.0.0/" must end in a prefix length from 0 to 32.'],
    ['10.0.0.0/08', '"10.0.0.0/08" must end in a prefix length from 0 to 32.'],
    ['10.0.0.0/+8', '"10.0.0.0/+8" must end in a prefix length from 0 to 32.'],
    ['10.0.0.0/8 ', '"10.0.0.0/8 " must end in a prefix length from 0 to 32.'],
    ['10.0.0.0/8/8', '"10.0.0.0/8/8" must end in a prefix length from 0 to 32.'],
    ['10.0.0.0/255.0.0.0', '"10.0.0.0/255.0.0.0" must end in a prefix length from 0 to 32.'],
    ['10.0.0/8', '"10.0.0/8" does not begin with an IPv4 or IPv6 address.'],
    ['010.0.0.0/8', '"010.0.0.0/8" does not begin with an IPv4 or IPv6 address.'],
    ['fe80::%1/64', '"fe80::%1/64" does not begin with an IPv4 or IPv6 address.'],
    ['/8', '"/8" does not begin with an IPv4 or IPv6 address.'],
  ])('%j is none', (text, message) => {
    expect(() => canonicalCidr(text)).toThrow(new InvalidRangeError(message));
  });

  test.each([
    ['::/0', true],
    ['::/80', true],
    ['::fffe:0:0/95', true],
    ['::ffff:0:0/96', false],
    ['2001:db8::/32', false],
    ['0.0.0.0/0', false],
  ])('%s covers the IPv4-mapped block: %s', (text, covers) => {
    expect(coversMappedBlock(parseRange(text))).toBe(covers);
  });
});

describe('the client address without trusted proxies', () => {
  test.each([
    ['is the first entry of the header', '203.0.113.7, 10.0.0.1', '203.0.113.7'],
    ['may have blanks around it', ' \t203.0.113.7 ,10.0.0.1', '203.0.113.7'],
    ['is canonical', '::ffff:203.0.113.7', '203.0.113.7'],
    ['is unknown without the header', undefined, null],
    ['is unknown when the header is empty', '', null],
    ['is unknown when the first entry is empty', ', 203.0.113.7', null],
    ['is unknown when the header is commas only', ',,', null],
    ['is unknown when the first entry has a port', '203.0.113.7:1234', null],
    ['is unknown when the first entry is bracketed', '[2001:db8::1]', null],
    ['is unknown when the first entry is quoted', '"203.0.113.7"', null],
    ['is unknown when the first entry has a zone id', 'fe80::1%eth0', null],
    ['is not the next entry when the first is unparsable', 'unknown, 203.0.113.7', null],
  ])('%s', (_, forwardedFor, address) => {
    expect(clientAddress({ forwardedFor, socketAddress: '192.0.2.1', trustedProxies: undefined })).toBe(address);
  });
});

describe('the client address behind trusted proxies', () => {
  const trustedProxies = ['10.0.0.0/8', '2001:db8::/32'].map(parseRange);

  test.each([
    ['is the last untrusted hop', '10.0.0.1', '203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['cannot be chosen by the caller', '10.0.0.1', '198.51.100.1, 203.0.113.7, 10.0.0.2', '203.0.113.7'],
    ['is the socket when that is not trusted', '192.0.2.1', '203.0.113.7', '192.0.2.1'],
    ['is the socket without the header', '10.0.0.1', undefined, '10.0.0.1'],
    ['is the outermost when all hops are trusted', '10.0.0.1', '10.0.0.3, 10.0.0.2', '10.0.0.3'],
    ['is unknown when an entry met on the way is unparsable', '10.0.0.1', '203.0.113.7, nonsense, 10.0.0.2', null],
    ['ignores what lies beyond the first untrusted hop', '10.0.0.1', 'nonsense, 203.0.113.7', '203.0.113.7'],
    ['is unknown when the header is empty', '10.0.0.1', '', null],
    ['is unknown without a socket address', undefined, '203.0.113.7', null],
    ['knows an IPv4 proxy on a dual-stack socket', '::ffff:10.0.0.1', '203.0.113.7', '203.0.113.7'],
    ['knows an IPv6 proxy', '2001:db8::9', '::ffff:203.0.113.7', '203.0.113.7'],
  ])('%s', (_, socketAddress, forwardedFor, address) => {
    expect(clientAddress({ forwardedFor, socketAddress, trustedProxies })).toBe(address);
  });

  test('is the socket when no proxy is trusted', () => {
    const sources = { forwardedFor: '203.0.113.7', socketAddress: '::ffff:192.0.2.1', trustedProxies: [] };
    expect(clientAddress(sources)).toBe('192.0.2.1');
  });

  test('never trusts IPv4 hops by an IPv6 range', () => {
    const sources = { forwardedFor: '203.0.113.7', socketAddress: '192.0.2.1', trustedProxies: [parseRange('::/0')] };
    expect(clientAddress(sources)).toBe('192.0.2.1');
  });
});
