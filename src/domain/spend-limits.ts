import { type ApiError, unauthorized } from './errors.ts';
import { formatUsd } from './money.ts';
import { calendarStart, formatTime, type PeriodUnit, windowEnd } from './time.ts';

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
  /** Of that, what belongs to the window that began at `currentPeriodStartedAt`. */
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
export interface RunningPeriod {
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

/** Whose limit it is, for those who call with the key; which project or person that is, they are not told. */
const WORDS = {
  key: { holder: 'this API key', its: 'its', limit: 'usage limit' },
  shared: { holder: 'the key that shares its limits with this API key', its: 'its', limit: 'usage limit' },
  member: { holder: 'the owner of this API key', its: 'their', limit: 'budget' },
  project: { holder: 'the project of this API key', its: 'its', limit: 'budget' },
  organization: { holder: 'the organization of this API key', its: 'its', limit: 'budget' },
} as const;

export type LimitScope = keyof typeof WORDS;

/** `all-time usage limit of this API key` */
export const limitName = (scope: LimitScope, kind: 'all-time' | 'recurring'): string =>
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

/** What changes with new limits. Another length or alignment of the window ends the running one; another amount alone keeps it. */
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
