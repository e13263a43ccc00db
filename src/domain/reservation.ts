import { ApiError, unauthorized } from './errors.ts';
import { formatUsd } from './money.ts';
import { type Budget, type LimitScope, limitName, runningPeriod, type SpendState } from './spend-limits.ts';
import { formatTime } from './time.ts';

/** What a call may cost at one mapping, in pico-dollars. */
export interface Bound {
  /** All but the output of a chat. */
  readonly fixed: bigint;
  /** Of one token of output in every choice. */
  readonly perOutputToken: bigint;
  /**
   * Most tokens of each choice: the caller's maximum or the mapping's own, whichever is smaller; 0 where tokens of output cost
   * nothing.
   */
  readonly maxOutputTokens: number;
}

/** What one call may cost at most, in pico-dollars. */
export interface WorstCase {
  /** With less it cannot be made. */
  readonly least: bigint;
  /** The most of it that an amount of at least `least` pays for. */
  within(amount: bigint): Omit<Reservation, 'limit'>;
}

/** What is held back for an open call. */
export interface Reservation {
  readonly amount: bigint;
  /** Tokens of output, for each choice, that it pays for; null where the call itself says how many. */
  readonly maxOutputTokens: number | null;
  /** The limit that leaves the least, and whose it is. */
  readonly limit: string;
}

/** What one of the limits leaves. */
interface Room {
  /** Which it is, and whose. */
  readonly limit: string;
  readonly left: bigint;
  /** Of that, what no open call holds. */
  readonly free: bigint;
  readonly reset: string;
}

function addRooms(rooms: Room[], scope: LimitScope, state: SpendState, now: number): void {
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

function roomsOf(key: SpendState, budgets: readonly Budget[], now: number): Room[] {
  const rooms: Room[] = [];
  addRooms(rooms, 'key', key, now);
  for (const budget of budgets) addRooms(rooms, budget.scope, budget, now);
  return rooms;
}

const smallest = (found: readonly Room[], of: 'left' | 'free'): Room | undefined =>
  found.reduce<Room | undefined>(
    (least, room) => (least === undefined || room[of] < least[of] ? room : least),
    undefined,
  );

/** What a key can still spend now, calls that run counted as if they were free; undefined: no limit applies. In pico-dollars. */
export function leftToSpend(key: SpendState, budgets: readonly Budget[], now: number): bigint | undefined {
  const left = smallest(roomsOf(key, budgets, now), 'left')?.left;
  return left === undefined || left > 0n ? left : 0n;
}

const tooExpensive = ({ limit, left, reset }: Room, needed: bigint): ApiError =>
  unauthorized(
    'usage_limit_reached',
    `This call may cost ${formatUsd(needed)} USD, and the ${limit} leaves ${formatUsd(left)} USD.${reset}`,
  );

const budgetReserved = ({ limit, left, free }: Room, needed: bigint): ApiError =>
  new ApiError(
    429,
    'budget_reserved',
    `This call may cost ${formatUsd(needed)} USD. The ${limit} leaves ${formatUsd(left)} USD, of which ` +
      `${formatUsd(left - free)} USD are held back for calls that are still running. Try again when they have ended.`,
    { headers: { 'retry-after': '1' } },
  );

/**
 * What a call holds back of its key's limits and of the budgets, so that calls side by side never reserve more than is left of
 * any; or why it cannot: 401 where the call does not fit at all, 429 where it does not fit next to the open ones
 * (src/admin/README.md, "does not fit"). At least one limit applies.
 */
export function reserve(
  key: SpendState,
  budgets: readonly Budget[],
  worstCase: WorstCase,
  now: number,
): Reservation | ApiError {
  const rooms = roomsOf(key, budgets, now);
  const [leaves, frees] = [smallest(rooms, 'left'), smallest(rooms, 'free')];
  if (leaves === undefined || frees === undefined) throw new Error('a key without a limit reserves nothing');
  if (worstCase.least > leaves.left) return tooExpensive(leaves, worstCase.least);
  if (worstCase.least > frees.free) return budgetReserved(frees, worstCase.least);
  const { amount, maxOutputTokens } = worstCase.within(frees.free);
  return { amount, maxOutputTokens, limit: frees.limit };
}
