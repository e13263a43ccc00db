import { describe, expect, it } from 'vitest';
import { parseRange } from '../../../src/domain/address.ts';
import {
  addressClasses,
  addressesOf,
  EVERY_ADDRESS,
  formatAddresses,
  formatRanges,
  intersect,
  isEmpty,
  NO_ADDRESS,
  subtract,
  union,
} from '../../../src/workbench/world/address-classes.ts';

const classesOf = (...ranges: string[]) =>
  addressClasses(ranges.map(parseRange)).map(({ representative, addresses }) => [
    representative,
    ...formatAddresses(addresses),
  ]);

describe('address classes', () => {
  it('without ranges are one of each family and the unknown address; IPv6 has the IPv4-mapped block for a hole', () => {
    expect(classesOf()).toEqual([
      ['0.0.0.0', '0.0.0.0/0'],
      ['::', '::-::fffe:ffff:ffff'],
      ['::1:0:0:0', '::1:0:0:0-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
      [null, 'unknown'],
    ]);
  });

  it('are split by the ends of ranges, at most twice for each range and once more', () => {
    const classes = classesOf('10.0.0.0/8', '10.1.0.0/16', '255.255.255.255/32');
    expect(classes.filter(([first]) => first?.includes('.'))).toEqual([
      ['0.0.0.0', '0.0.0.0-9.255.255.255'],
      ['10.0.0.0', '10.0.0.0/16'],
      ['10.1.0.0', '10.1.0.0/16'],
      ['10.2.0.0', '10.2.0.0-10.255.255.255'],
      ['11.0.0.0', '11.0.0.0-255.255.255.254'],
      ['255.255.255.255', '255.255.255.255/32'],
    ]);
  });

  it('never stand for an IPv4-mapped address', () => {
    const representatives = classesOf('::/80', '::/0', '::ffff:0:0/95', '::/64').map(([first]) => first);
    expect(representatives.filter((first) => first?.startsWith('::ffff:'))).toEqual([]);
  });
});

it('addresses are written as the fewest ranges that hold no other', () => {
  const rangesOf = (...texts: string[]) => formatRanges(addressesOf(texts));
  expect(rangesOf('10.0.0.6', '10.0.0.3', '10.0.0.5', '10.0.0.4', '10.0.0.5')).toEqual([
    '10.0.0.3/32',
    '10.0.0.4/31',
    '10.0.0.6/32',
  ]);
  expect(rangesOf('255.255.255.255', '255.255.255.254', '0.0.0.0')).toEqual(['0.0.0.0/32', '255.255.255.254/31']);
  expect(rangesOf('2001:db8::1', '2001:db8::', '2001:db8::2')).toEqual(['2001:db8::/127', '2001:db8::2/128']);
  expect(formatRanges(EVERY_ADDRESS).filter((range) => range.includes('.'))).toEqual(['0.0.0.0/0']);
  expect(rangesOf()).toEqual([]);
});

describe('address sets', () => {
  const setOf = (text: string) => {
    const found = addressClasses([parseRange(text)]).filter(({ addresses }) => formatAddresses(addresses)[0] === text);
    return union(found.map(({ addresses }) => addresses));
  };

  it('join what touches, and read as one across the IPv4-mapped block', () => {
    expect(formatAddresses(union([setOf('10.0.0.0/9'), setOf('10.128.0.0/9')]))).toEqual(['10.0.0.0/8']);
    expect(formatAddresses(union(addressClasses([]).map(({ addresses }) => addresses)))).toEqual([
      '0.0.0.0/0',
      '::/0',
      'unknown',
    ]);
  });

  it('intersect and subtract', () => {
    const [wide, narrow] = [setOf('10.0.0.0/8'), setOf('10.0.0.0/9')];
    expect(intersect(wide, narrow)).toEqual(narrow);
    expect(formatAddresses(subtract(wide, narrow))).toEqual(['10.128.0.0/9']);
    expect(isEmpty(subtract(narrow, wide))).toBe(true);
    expect(subtract(EVERY_ADDRESS, EVERY_ADDRESS)).toEqual(NO_ADDRESS);
    expect(subtract(EVERY_ADDRESS, NO_ADDRESS)).toEqual(EVERY_ADDRESS);
  });
});
