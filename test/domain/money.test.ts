import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../src/domain/errors.ts';
import {
  capAmount,
  formatUsd,
  formatUsdPerMillion,
  MAX_AMOUNT,
  parseUsd,
  parseUsdPerMillion,
  usdNumber,
} from '../../src/domain/limits.ts';

const refused = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error instanceof ApiError ? error.envelope().error : error;
  }
};

describe('amounts in USD', () => {
  test.each([
    ['0', 0n],
    ['12.5', 12_500_000_000_000n],
    ['0.000000000001', 1n],
    ['1.10', 1_100_000_000_000n],
    ['9007.199254740993', 9_007_199_254_740_993n],
    ['9000000', MAX_AMOUNT],
  ])('%s is %s pico-dollars', (text, pico) => {
    expect(parseUsd(text)).toBe(pico);
  });

  test.each([
    [''],
    ['.5'],
    ['5.'],
    ['05'],
    ['-1'],
    ['+1'],
    ['1e3'],
    ['1,5'],
    [' 1'],
    ['NaN'],
    ['٣'],
    ['0x10'],
    ['0'.repeat(2_000_000)],
  ])('%.12s is not an amount', (text) => {
    expect(refused(() => parseUsd(text, '/usageLimit'))).toEqual({
      message: 'An amount must be a plain decimal number, such as "12.5".',
      type: 'invalid_request_error',
      param: '/usageLimit',
      code: 'invalid_request',
    });
  });

  test('13 decimal places are refused, not rounded', () => {
    expect(refused(() => parseUsd('0.0000000000010', '/a'))).toEqual({
      message: 'An amount may have at most 12 decimal places.',
      type: 'invalid_request_error',
      param: '/a',
      code: 'invalid_request',
    });
  });

  test('more than 9000000 USD is refused', () => {
    expect(refused(() => parseUsd('9000000.000000000001'))).toMatchObject({
      message: 'An amount may be at most 9000000 USD.',
    });
  });

  test.each([
    [0n, '0'],
    [1n, '0.000000000001'],
    [1_500_000_000_000n, '1.5'],
    [MAX_AMOUNT, '9000000'],
    [-1_500_000_000_000n, '-1.5'],
  ])('%s pico-dollars are written in the shortest way', (pico, text) => {
    expect(formatUsd(pico)).toBe(text);
  });

  test('every amount survives being written and read', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: MAX_AMOUNT }), (pico) => {
        const text = formatUsd(pico);
        expect(parseUsd(text)).toBe(pico);
        expect(text).not.toMatch(/\.\d*0$/);
      }),
    );
  });

  test('the JSON number is the one nearest to the decimal text', () => {
    expect([usdNumber(0n), usdNumber(1n), usdNumber(100_000_000_000n), usdNumber(123_456_789n)]).toEqual([
      0, 1e-12, 0.1, 0.000123456789,
    ]);
  });

  test('an absurd amount is held at the largest one', () => {
    expect([capAmount(5n), capAmount(MAX_AMOUNT), capAmount(10n ** 40n)]).toEqual([5n, MAX_AMOUNT, MAX_AMOUNT]);
  });
});

describe('price caps in USD per million tokens', () => {
  test.each([
    ['0', 0n],
    ['1', 1_000_000n],
    ['0.000001', 1n],
    [2.5, 2_500_000n],
    [1e-6, 1n],
    ['9000000', 9_000_000_000_000n],
  ])('%s is %s pico-dollars per token', (price, pico) => {
    expect(parseUsdPerMillion(price)).toBe(pico);
  });

  test.each([
    ['0.0000001'],
    [1e-7],
    [0.1 + 0.2],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [-1],
    [1e21],
    ['9000000.1'],
  ])('%s is refused', (price) => {
    expect(refused(() => parseUsdPerMillion(price))).toMatchObject({ code: 'invalid_request' });
  });

  test('every price of whole pico-dollars per token survives being written and read', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 9_000_000_000_000n }), (pico) => {
        expect(parseUsdPerMillion(formatUsdPerMillion(pico))).toBe(pico);
      }),
    );
  });
});
