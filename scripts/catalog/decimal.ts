import { formatUsd } from '../../src/domain/limits.ts';

const DECIMAL = /^([0-9]+)(?:\.([0-9]+))?(?:e([+-]?[0-9]+))?$/;

/**
 * A decimal number times a power of ten, rounded half up to a whole number. The text of a JavaScript number is its shortest
 * decimal, so nothing is computed in floating point.
 */
export function scaled(value: number | string, powerOfTen: number): bigint {
  const match = DECIMAL.exec(String(value));
  if (match === null) throw new Error(`not a price: ${value}`);
  const [, whole = '', fraction = '', exponent = '0'] = match;
  const power = powerOfTen + Number(exponent) - fraction.length;
  const digits = BigInt(whole + fraction);
  if (power >= 0) return digits * 10n ** BigInt(power);
  const divisor = 10n ** BigInt(-power);
  return (digits * 2n + divisor) / (divisor * 2n);
}

/** Pico-dollars per token of a price in USD per million tokens. */
export const perMillion = (usd: number | string): bigint => scaled(usd, 6);

/** Pico-dollars each of a price in USD per thousand. */
export const perThousand = (usd: number | string): bigint => scaled(usd, 9);

/** Pico-dollars of a price in USD for one. */
export const each = (usd: number | string): bigint => scaled(usd, 12);

/** A price as the data files write it: USD, decimal, at most 12 places. */
export const priceText = (pico: bigint): string => formatUsd(pico);
