import { invalidRequest, permissionDenied } from '../../domain/errors.ts';
import type { MinuteLimits, NewLimits, SpendLimits } from '../../domain/limits.ts';
import { parseUsd } from '../../domain/money.ts';
import { checkPeriod } from '../../domain/time.ts';
import type { KeyPatch } from '../../generated/types.ts';
import { type Actor, isDeveloper } from '../audit/actor.ts';

type LimitFields = Pick<
  KeyPatch,
  'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit' | 'periodUsageAlignment'
>;

/** The limits of a key or a budget that a change is judged together with. */
export type PresentLimits = Pick<
  SpendLimits,
  'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit' | 'periodUsageAlignment'
>;

const AMOUNT = 'must be null or an amount in USD: a plain decimal string such as "12.5", at most 9000000';

/** What a field of a limit must be, for the answer to a wrong one. */
export const LIMIT_EXPLANATIONS = [
  { at: /\/(usageLimit|periodUsageLimit)$/, must: AMOUNT },
  { at: /\/periodUsageDurationValue$/, must: 'must be null or a whole number of at least 1 and at most 8760' },
  { at: /\/periodUsageDurationUnit$/, must: 'must be null or one of hour, day, week, month' },
  { at: /\/periodUsageAlignment$/, must: 'must be null or calendar' },
];

export const NO_LIMITS: PresentLimits = {
  usageLimit: null,
  periodUsageLimit: null,
  periodUsageDurationValue: null,
  periodUsageDurationUnit: null,
  periodUsageAlignment: null,
};

export const namesLimits = (fields: LimitFields): boolean =>
  Object.keys(NO_LIMITS).some((name) => Object.hasOwn(fields, name));

/**
 * The limits of a key or a budget after a change: absent fields stay, null removes. The three period fields come together or not
 * at all; removing the recurring amount removes its window with it (src/admin/README.md, "limits"). A window of another length begins
 * with a call, unless its alignment is named too.
 * @param at where the fields stand in the body. @throws ApiError 400 naming the field.
 */
export function newLimits(fields: LimitFields, present: PresentLimits, at = ''): NewLimits {
  const { usageLimit, periodUsageLimit } = fields;
  return {
    usageLimit: amount(usageLimit, present.usageLimit, `${at}/usageLimit`),
    period: newPeriod(
      amount(periodUsageLimit, present.periodUsageLimit, `${at}/periodUsageLimit`),
      fields,
      periodUsageLimit === null ? NO_LIMITS : present,
      at,
    ),
  };
}

const amount = (given: string | null | undefined, present: bigint | null, param: string): bigint | null =>
  given === undefined ? present : given === null ? null : parseUsd(given, param);

function newPeriod(limit: bigint | null, fields: LimitFields, present: PresentLimits, at: string): NewLimits['period'] {
  const { periodUsageDurationValue: value = present.periodUsageDurationValue } = fields;
  const { periodUsageDurationUnit: unit = present.periodUsageDurationUnit } = fields;
  const sameLength = value === present.periodUsageDurationValue && unit === present.periodUsageDurationUnit;
  const { periodUsageAlignment: alignment = sameLength ? present.periodUsageAlignment : null } = fields;
  if (limit === null && value === null && unit === null && alignment === null) return null;
  if (limit === null || value === null || unit === null) {
    const missing = limit === null ? 'Limit' : value === null ? 'DurationValue' : 'DurationUnit';
    throw invalidRequest(
      'periodUsageLimit, periodUsageDurationValue and periodUsageDurationUnit come together or not at all.',
      `${at}/periodUsage${missing}`,
    );
  }
  checkPeriod(value, unit, `${at}/periodUsageDurationValue`);
  if (alignment === null) return { limit, value, unit };
  if (value !== 1) {
    throw invalidRequest(
      'A window that follows the calendar is one hour, day, week or month long.',
      `${at}/periodUsageDurationValue`,
    );
  }
  return { limit, value, unit, alignment };
}

const MINUTE_NAMES = ['requestsPerMinute', 'tokensPerMinute'] as const;

/** Rule for a limit a minute, for the answer to a wrong one. */
export const MINUTE_LIMIT_EXPLANATION = {
  at: /^\/(requestsPerMinute|tokensPerMinute)$/,
  must: 'must be null or a whole number from 1 to 1000000000',
};

/** The limits a minute that were named. */
export const minuteLimits = (fields: Partial<MinuteLimits>): Partial<MinuteLimits> =>
  Object.fromEntries(MINUTE_NAMES.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));

/** Throws 403 when a developer would take more in a minute than they may now: nobody lifts a limit that binds them. */
export function checkKeepsMinuteLimits(actor: Actor, wanted: Partial<MinuteLimits>, present: MinuteLimits): void {
  if (!isDeveloper(actor)) return;
  for (const name of MINUTE_NAMES) {
    const [most, more] = [present[name], wanted[name]];
    if (most === null || more === undefined || (more !== null && more <= most)) continue;
    throw permissionDenied(`Developers cannot raise what they may use in a minute: ${name} is at most ${most}.`);
  }
}

/** The smallest of each limit. */
export function leastMinuteLimits(all: readonly MinuteLimits[]): MinuteLimits {
  const least = (name: keyof MinuteLimits): number | null =>
    all.reduce<number | null>((most, { [name]: each }) => (each === null ? most : Math.min(each, most ?? each)), null);
  return { requestsPerMinute: least('requestsPerMinute'), tokensPerMinute: least('tokensPerMinute') };
}
