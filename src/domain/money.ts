import { invalidRequest } from './errors.ts';

/** Pico-dollars in one US dollar. Every amount inside Portcullis is a BigInt count of them (src/domain/README.md, "money"). */
export const PICO_PER_USD = 1_000_000_000_000n;

/** The largest amount accepted or kept: 9,000,000 USD, which still fits a signed 64-bit integer. */
export const MAX_AMOUNT = 9_000_000n * PICO_PER_USD;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

const PLAIN_DECIMAL = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/;

/** Units of 10^-places in a plain decimal text; anything else is a 400 that names `param`. */
function parseDecimal(text: string, places: number, param: string | null): bigint {
  const match = text.length <= 40 ? PLAIN_DECIMAL.exec(text) : null;
  if (match === null) throw invalidRequest('An amount must be a plain decimal number, such as "12.5".', param);
  const [, whole = '', fraction = ''] = match;
  if (fraction.length > places) throw invalidRequest(`An amount may have at most ${places} decimal places.`, param);
  return BigInt(whole + fraction.padEnd(places, '0'));
}

function atMostMaximum(pico: bigint, limit: bigint, param: string | null): bigint {
  if (pico > limit) throw invalidRequest('An amount may be at most 9000000 USD.', param);
  return pico;
}

/**
 * Pico-dollars of a decimal text in USD: at most 12 places, 0 to 9,000,000. Prices in USD per token are written the same way.
 * @param param JSON pointer named by the 400 that everything else is answered with.
 */
export const parseUsd = (text: string, param: string | null = null): bigint =>
  atMostMaximum(parseDecimal(text, 12, param), MAX_AMOUNT, param);

/** The shortest decimal text of an amount in pico-dollars, in USD: `0`, `12.5`, `0.000000000001`. Reverses `parseUsd`. */
export function formatUsd(pico: bigint): string {
  const sign = pico < 0n ? '-' : '';
  const digits = (pico < 0n ? -pico : pico).toString().padStart(13, '0');
  const fraction = digits.slice(-12).replace(/0+$/, '');
  return `${sign}${digits.slice(0, -12)}${fraction === '' ? '' : `.${fraction}`}`;
}

/**
 * Pico-dollars per token of a price cap in USD per million tokens: a plain decimal with at most 6 places, 0 to 9,000,000;
 * a JSON number is read by its shortest decimal text. Anything else is a 400 (policy/reference.md, "IAM rules").
 */
export const parseUsdPerMillion = (price: string | number, param: string | null = null): bigint =>
  atMostMaximum(parseDecimal(String(price), 6, param), 9_000_000n * 1_000_000n, param);

/** The shortest decimal text, in USD per million tokens, of a price in pico-dollars per token. */
export const formatUsdPerMillion = (picoPerToken: bigint): string => formatUsd(picoPerToken * 1_000_000n);

/** Pico-dollars per token: 0.001 USD per million tokens. */
const LEAST_USUAL_PRICE = 1000n;

/** A price of a token so low that it was probably meant per token, and read per million. @param picoPerToken undefined: unknown */
export const isOddlyLow = (picoPerToken: bigint | undefined): boolean =>
  picoPerToken !== undefined && picoPerToken > 0n && picoPerToken < LEAST_USUAL_PRICE;

/** The JSON number nearest to an amount, in USD: only for response fields that the specification types as number. */
export const usdNumber = (pico: bigint): number => {
  if (pico === 0n) return 0;
  // Both operands are exact below 2^53, so the quotient is the nearest number; above it the text is read instead.
  return pico <= MAX_SAFE && pico >= -MAX_SAFE ? Number(pico) / 1e12 : Number(formatUsd(pico));
};

/** The amount, or the largest one if it is larger: an absurd report of usage must not overflow what is stored. */
export function capAmount(pico: bigint): bigint {
  if (pico > MAX_AMOUNT) return MAX_AMOUNT;
  return pico;
}
