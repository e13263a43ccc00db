import { describe, expect, it } from 'vitest';
import { formatAddress, parseAddress, rangesAround } from './oracle-addresses.ts';

describe('addresses', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7/32', ['192.0.2.7/32']],
    ['192.0.2.7', '192.0.2.9/24', ['192.0.2.0/24']],
    ['192.0.3.0', '192.0.2.9/24', []],
    ['255.255.255.255', '0.0.0.0/0', ['0.0.0.0/0']],
    ['192.0.2.7', '::ffff:192.0.2.0/120', ['192.0.2.0/24']],
    ['192.0.2.7', '::FFFF:0:0/96', ['0.0.0.0/0']],
    ['192.0.2.7', '::ffff:0:0/95', []],
    ['192.0.2.7', '::/0', []],
    ['::1', '::/0', ['::/0']],
    ['::1', '0.0.0.0/0', []],
    ['2001:db8::1', '2001:DB8:0:0:ffff::/64', ['2001:db8::/64']],
    ['2001:db8::1', '2001:db8::1/128', ['2001:db8::1/128']],
    ['2001:db9::', '2001:db8::/32', []],
  ])('%s against %s', (address, range, expected) => {
    expect(rangesAround(address, [range])).toEqual(expected);
  });

  it('are written as RFC 5952 wants them', () => {
    const texts = [
      '0:0:0:0:0:0:0:0',
      '2001:DB8:0:0:1:0:0:1',
      '1:0:2:3:4:5:6:7',
      '1:0:0:2:0:0:0:3',
      '1:2:3:4:5:6:0:0',
      '10.0.0.1',
    ];
    const written = texts.map((text) => formatAddress(parseAddress(text)));
    expect(written).toEqual(['::', '2001:db8::1:0:0:1', '1:0:2:3:4:5:6:7', '1:0:0:2::3', '1:2:3:4:5:6::', '10.0.0.1']);
  });
});
