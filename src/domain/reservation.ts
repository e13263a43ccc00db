import { type ApiKey, runningPeriod } from './api-key.ts';
import { ApiError, unauthorized } from './errors.ts';
import { formatUsd } from './money.ts';
import { formatTime } from './time.ts';

/** A key with what is held back for its open calls, in pico-dollars. */
export interface SpendState extends ApiKey {
  readonly reserved: bigint;
  /** Of that, what belongs to the window that began at `currentPeriodStartedAt`. */
  readonly currentPeriodReserved: bigint;
}

/** What one call may cost at most, in pico-dollars. */
export interface WorstCase {
  /** With less it cannot be made. */
  readonly least: bigint;
  /** The most of it that an amount of at least `least` pays for. */
  within(amount: bigint): Reservation;
}

/** What is held back for an open call. */
export interface Reservation {
  readonly amount: bigint;
  /** Tokens of output, for each choice, that it pays for; null where the call itself says how many. */
  readonly maxOutputTokens: number | null;
}

/** What one of a key's limits leaves. */
interface Room {
  readonly limit: string;
  readonly left: bigint;
  /** Of that, what no open call holds. */
  readonly free: bigint;
  readonly reset: string;
}

function rooms(key: SpendState, now: number): Room[] {
  const found: Room[] = [];
  if (key.usageLimit !== null) {
    const left = key.usageLimit - key.usage;
    found.push({ limit: 'all-time', left, free: left - key.reserved, reset: '' });
  }
  if (key.periodUsageLimit !== null) {
    const period = runningPeriod(key, now);
    const left = key.periodUsageLimit - (period?.usage ?? 0n);
    const free = left - (period === undefined ? 0n : key.currentPeriodReserved);
    const reset = period === undefined ? '' : ` It resets at ${formatTime(period.resetAt)}.`;
    found.push({ limit: 'recurring', left, free, reset });
  }
  return found;
}

const smallest = (found: readonly Room[], of: 'left' | 'free'): Room | undefined =>
  found.reduce<Room | undefined>(
    (least, room) => (least === undefined || room[of] < least[of] ? room : least),
    undefined,
  );

const tooDear = ({ limit, left, reset }: Room, needed: bigint): ApiError =>
  unauthorized(
    'usage_limit_reached',
    `This call may cost ${formatUsd(needed)} USD, and the ${limit} usage limit of this API key leaves ${formatUsd(left)} USD.${reset}`,
  );

const budgetReserved = ({ limit, left, free }: Room, needed: bigint): ApiError =>
  new ApiError(
    429,
    'budget_reserved',
    `This call may cost ${formatUsd(needed)} USD. The ${limit} usage limit of this API key leaves ${formatUsd(left)} USD, of which ` +
      `${formatUsd(left - free)} USD are held back for calls that are still running. Try again when they have ended.`,
    { headers: { 'retry-after': '1' } },
  );

/**
 * What a key with a limit holds back for a call, so that calls side by side never reserve more than is left of either limit; or
 * why it cannot: 401 where the call does not fit at all, 429 where it does not fit beside the open ones (decisions.md, section 3,
 * "hard cap", "does not fit").
 */
export function reserve(key: SpendState, worstCase: WorstCase, now: number): Reservation | ApiError {
  const found = rooms(key, now);
  const [leaves, frees] = [smallest(found, 'left'), smallest(found, 'free')];
  if (leaves === undefined || frees === undefined) throw new Error('a key without a limit reserves nothing');
  if (worstCase.least > leaves.left) return tooDear(leaves, worstCase.least);
  if (worstCase.least > frees.free) return budgetReserved(frees, worstCase.least);
  return worstCase.within(frees.free);
}
