import { ApiError, invalidRequest, unauthorized } from './errors.ts';
import { calendarStart, formatTime, type PeriodUnit, windowEnd } from './time.ts';

/** Pico-dollars in one US dollar. Every amount inside Portcullis is a BigInt count of them (src/domain/README.md, "money"). */
export const PICO_PER_USD = 1_000_000_000_000n;

/** Most US dollars that an amount or a price per million tokens may be: in pico-dollars, they still fit a signed 64-bit integer. */
export const MAX_USD = 9_000_000n;

/** The largest amount accepted or kept. */
export const MAX_AMOUNT = MAX_USD * PICO_PER_USD;

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
  if (pico > limit) throw invalidRequest(`An amount may be at most ${MAX_USD} USD.`, param);
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
  atMostMaximum(parseDecimal(String(price), 6, param), MAX_USD * 1_000_000n, param);

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

/** `calendar`: the windows are the hours, days, weeks or months of the calendar, in UTC. */
export type PeriodAlignment = 'calendar';

/** The two limits of a key or a budget and what was spent of them. Times in epoch ms, amounts in pico-dollars; null: none. */
export interface SpendLimits {
  readonly usageLimit: bigint | null;
  readonly usage: bigint;
  /** The limit, its value and its unit are null together, and without them there is no alignment. */
  readonly periodUsageLimit: bigint | null;
  readonly periodUsageDurationValue: number | null;
  readonly periodUsageDurationUnit: PeriodUnit | null;
  /** Null: a window begins with a call. */
  readonly periodUsageAlignment: PeriodAlignment | null;
  /** Spent in the window that began at `currentPeriodStartedAt`, which may have ended since. */
  readonly currentPeriodUsage: bigint;
  readonly currentPeriodStartedAt: number | null;
}

/** Spend limits with what is held back of them for open calls, in pico-dollars. */
export interface SpendState extends SpendLimits {
  readonly reserved: bigint;
  /** Part of `reserved` that belongs to the window that began at `currentPeriodStartedAt`. */
  readonly currentPeriodReserved: bigint;
}

export type BudgetScope = 'member' | 'project' | 'organization';

/**
 * The limits that all keys of a member, a project or an organization share (src/admin/README.md, "budgets"), or the keys that share
 * the limits of one of them ("Keys that developers make").
 */
export interface Budget extends SpendState {
  readonly scope: BudgetScope | 'shared';
  /** Id of the member, the project, the organization or the key. */
  readonly subjectId: string;
}

/** The window that runs at some instant. */
interface RunningPeriod {
  readonly startedAt: number;
  readonly resetAt: number;
  readonly usage: bigint;
}

/** The recurring window that runs at `now`, or undefined: none is set, none has begun, or the last has ended. */
export function runningPeriod(limits: SpendLimits, now: number): RunningPeriod | undefined {
  const { currentPeriodStartedAt: startedAt, periodUsageDurationValue, periodUsageDurationUnit } = limits;
  if (startedAt === null || periodUsageDurationValue === null || periodUsageDurationUnit === null) return undefined;
  const start = limits.periodUsageAlignment === null ? startedAt : calendarStart(startedAt, periodUsageDurationUnit);
  const resetAt = windowEnd(start, periodUsageDurationValue, periodUsageDurationUnit);
  return now < resetAt ? { startedAt, resetAt, usage: limits.currentPeriodUsage } : undefined;
}

/** The window of the calendar at `now`; undefined where the limit's windows begin with a call, or there is no such limit. */
export function calendarWindow(limits: SpendLimits, now: number): Omit<RunningPeriod, 'usage'> | undefined {
  const { periodUsageAlignment, periodUsageDurationValue: value, periodUsageDurationUnit: unit } = limits;
  if (periodUsageAlignment === null || value === null || unit === null) return undefined;
  const startedAt = calendarStart(now, unit);
  return { startedAt, resetAt: windowEnd(startedAt, value, unit) };
}

/** A spend limit applies, whichever. */
export const isCapped = (limits: Pick<SpendLimits, 'usageLimit' | 'periodUsageLimit'>): boolean =>
  limits.usageLimit !== null || limits.periodUsageLimit !== null;

/** A spend limit binds the key: its own, or a budget's. */
export const isLimited = (key: Parameters<typeof isCapped>[0] & { readonly budgets: readonly Budget[] }): boolean =>
  isCapped(key) || key.budgets.length > 0;

const usageSpent = ({ usageLimit, usage }: SpendLimits): boolean => usageLimit !== null && usage >= usageLimit;

const periodSpent = (limits: SpendLimits, now: number): boolean =>
  limits.periodUsageLimit !== null && (runningPeriod(limits, now)?.usage ?? 0n) >= limits.periodUsageLimit;

/** Nothing is left of one of the limits. */
export const isSpent = (limits: SpendLimits, now: number): boolean => usageSpent(limits) || periodSpent(limits, now);

/** Names of a limit's owner for those who call with the key; they do not learn which project or person that is. */
const WORDS = {
  key: { holder: 'this API key', its: 'its', limit: 'usage limit' },
  shared: { holder: 'the key that shares its limits with this API key', its: 'its', limit: 'usage limit' },
  member: { holder: 'the owner of this API key', its: 'their', limit: 'budget' },
  project: { holder: 'the project of this API key', its: 'its', limit: 'budget' },
  organization: { holder: 'the organization of this API key', its: 'its', limit: 'budget' },
} as const;

type LimitScope = keyof typeof WORDS;

/** `all-time usage limit of this API key` */
const limitName = (scope: LimitScope, kind: 'all-time' | 'recurring'): string =>
  `${kind} ${WORDS[scope].limit} of ${WORDS[scope].holder}`;

/** The 401 of a limit of which nothing is left at `now`. */
export function spentRefusal(scope: LimitScope, limits: SpendLimits, now: number): ApiError {
  const { holder, its, limit } = WORDS[scope];
  const reached = `${holder.charAt(0).toUpperCase()}${holder.slice(1)} has reached ${its}`;
  if (limits.usageLimit !== null && usageSpent(limits)) {
    const amount = formatUsd(limits.usageLimit);
    return unauthorized('usage_limit_reached', `${reached} all-time ${limit} of ${amount} USD.`);
  }
  const period = runningPeriod(limits, now);
  const reset =
    period === undefined
      ? 'It does not reset: the limit must be raised.'
      : `It resets at ${formatTime(period.resetAt)}.`;
  const amount = formatUsd(limits.periodUsageLimit ?? 0n);
  return unauthorized('usage_limit_reached', `${reached} recurring ${limit} of ${amount} USD. ${reset}`);
}

/** The 401 of the first budget of which nothing is left, or undefined when all leave something. */
export function budgetRefusal(budgets: readonly Budget[], now: number): ApiError | undefined {
  const spent = budgets.find((budget) => isSpent(budget, now));
  return spent === undefined ? undefined : spentRefusal(spent.scope, spent, now);
}

/** New limits; a recurring limit is all three period fields or none (null). */
export interface NewLimits {
  readonly usageLimit: bigint | null;
  readonly period: NewPeriod | null;
}

export interface NewPeriod {
  readonly limit: bigint;
  readonly value: number;
  readonly unit: PeriodUnit;
  /** Absent: a window begins with a call. */
  readonly alignment?: PeriodAlignment;
}

/** Changes that new limits make. Another length or alignment of the window ends the running one; another amount alone keeps it. */
export function limitChanges(present: SpendLimits, { usageLimit, period }: NewLimits): Partial<SpendLimits> {
  const sameLength =
    period !== null &&
    period.value === present.periodUsageDurationValue &&
    period.unit === present.periodUsageDurationUnit &&
    (period.alignment ?? null) === present.periodUsageAlignment;
  return {
    usageLimit,
    periodUsageLimit: period?.limit ?? null,
    periodUsageDurationValue: period?.value ?? null,
    periodUsageDurationUnit: period?.unit ?? null,
    periodUsageAlignment: period?.alignment ?? null,
    ...(sameLength ? {} : { currentPeriodUsage: 0n, currentPeriodStartedAt: null }),
  };
}

/** Most that a call may cost at one mapping, in pico-dollars. */
export interface Bound {
  /** All but the output of a chat. */
  readonly fixed: bigint;
  /** Cost of one token of output in every choice. */
  readonly perOutputToken: bigint;
  /**
   * Most tokens of each choice: the caller's maximum or the mapping's own, whichever is smaller; 0 where tokens of output cost
   * nothing.
   */
  readonly maxOutputTokens: number;
}

/** The most that a call may cost, in pico-dollars. */
export interface Bounds {
  /** With less the call cannot be made. An error: no price is known, so no limit could be kept. */
  readonly least: bigint | ApiError;
  /** The most of it that an amount of at least `least` pays for. */
  within(amount: bigint): Omit<Reservation, 'limit'>;
}

/** Amount that is held back for an open call. */
export interface Reservation {
  readonly amount: bigint;
  /** Tokens of output, for each choice, that it pays for; null where the call itself says how many. */
  readonly maxOutputTokens: number | null;
  /** The limit that leaves the least, and whose it is. */
  readonly limit: string;
}

/** Room that one of the limits leaves. */
interface LimitRoom {
  /** Which it is, and whose. */
  readonly limit: string;
  readonly left: bigint;
  /** Part of `left` that no open call holds. */
  readonly free: bigint;
  readonly reset: string;
}

function addRooms(rooms: LimitRoom[], scope: LimitScope, state: SpendState, now: number): void {
  if (state.usageLimit !== null) {
    const left = state.usageLimit - state.usage;
    rooms.push({ limit: limitName(scope, 'all-time'), left, free: left - state.reserved, reset: '' });
  }
  if (state.periodUsageLimit !== null) {
    const period = runningPeriod(state, now);
    const left = state.periodUsageLimit - (period?.usage ?? 0n);
    const free = left - (period === undefined ? 0n : state.currentPeriodReserved);
    const reset = period === undefined ? '' : ` It resets at ${formatTime(period.resetAt)}.`;
    rooms.push({ limit: limitName(scope, 'recurring'), left, free, reset });
  }
}

function roomsOf(key: SpendState, budgets: readonly Budget[], now: number): LimitRoom[] {
  const rooms: LimitRoom[] = [];
  addRooms(rooms, 'key', key, now);
  for (const budget of budgets) addRooms(rooms, budget.scope, budget, now);
  return rooms;
}

const smallest = (found: readonly LimitRoom[], of: 'left' | 'free'): LimitRoom | undefined =>
  found.reduce<LimitRoom | undefined>(
    (least, room) => (least === undefined || room[of] < least[of] ? room : least),
    undefined,
  );

/**
 * Amount that a key can still spend now, with running calls counted as if they were free; undefined: no limit applies. In
 * pico-dollars.
 */
export function leftToSpend(key: SpendState, budgets: readonly Budget[], now: number): bigint | undefined {
  const left = smallest(roomsOf(key, budgets, now), 'left')?.left;
  return left === undefined || left > 0n ? left : 0n;
}

const tooExpensive = ({ limit, left, reset }: LimitRoom, needed: bigint): ApiError =>
  unauthorized(
    'usage_limit_reached',
    `This call may cost ${formatUsd(needed)} USD, and the ${limit} leaves ${formatUsd(left)} USD.${reset}`,
  );

const budgetReserved = ({ limit, left, free }: LimitRoom, needed: bigint): ApiError =>
  new ApiError(
    429,
    'budget_reserved',
    `This call may cost ${formatUsd(needed)} USD. The ${limit} leaves ${formatUsd(left)} USD, of which ` +
      `${formatUsd(left - free)} USD are held back for calls that are still running. Try again when they have ended.`,
    { headers: { 'retry-after': '1' } },
  );

/**
 * Holds back a call's amount from its key's limits and from the budgets, so that concurrent calls never reserve more than is
 * left of any; or returns why it cannot: 401 where the call does not fit at all, 429 where it does not fit next to the open
 * ones (src/admin/README.md, "does not fit"). At least one limit applies.
 */
export function reserve(
  key: SpendState,
  budgets: readonly Budget[],
  bounds: Bounds,
  now: number,
): Reservation | ApiError {
  const { least } = bounds;
  if (least instanceof ApiError) return least;
  const rooms = roomsOf(key, budgets, now);
  const [leaves, frees] = [smallest(rooms, 'left'), smallest(rooms, 'free')];
  if (leaves === undefined || frees === undefined) throw new Error('a key without a limit reserves nothing');
  if (least > leaves.left) return tooExpensive(leaves, least);
  if (least > frees.free) return budgetReserved(frees, least);
  const { amount, maxOutputTokens } = bounds.within(frees.free);
  return { amount, maxOutputTokens, limit: frees.limit };
}

/** Endpoints with separate limits (src/http/README.md, "Rates and load"). */
export type LimitedEndpoint = 'chat' | 'images' | 'models' | 'moderations' | 'mcp' | 'management' | 'sign_in' | 'oauth';

/**
 * Requests a minute that an organization may make of each endpoint, and a master key of the management host; undefined: as many as
 * they like.
 */
export type RateLimits = Readonly<Record<Exclude<LimitedEndpoint, 'sign_in' | 'oauth'>, number | undefined>>;

/** Forms a minute that an address may send to the pages of sign-in: enough for an office behind one address, too few to guess with. */
const SIGN_IN_RATE = 60;

/** Requests a minute that an address may make of the authorization server: a client needs three to begin, and one an hour. */
const OAUTH_RATE = 120;

/** Requests a minute at each endpoint, those included that nobody sets. */
export const allRateLimits = (limits: RateLimits): Readonly<Record<LimitedEndpoint, number | undefined>> => ({
  ...limits,
  sign_in: SIGN_IN_RATE,
  oauth: OAUTH_RATE,
});

/** Owner of the limit. */
export type RateScope = 'address' | 'master_key' | 'key' | 'member' | 'project' | 'organization';

/** Limits per minute of a key, its owner, its project or its organization; null: unlimited. */
export interface MinuteLimits {
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

/** The limits a minute of one of those that a key belongs to; at least one of them is set. */
export interface KeyRate {
  readonly scope: Exclude<RateScope, 'address' | 'master_key'>;
  readonly subjectId: string;
  readonly requests: number | null;
  readonly tokens: number | null;
}
