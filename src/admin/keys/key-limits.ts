import { keyState } from '../../domain/api-key.ts';
import { invalidRequest, nullOr, permissionDenied } from '../../domain/errors.ts';
import {
  calendarWindow,
  formatUsd,
  type MinuteLimits,
  type NewLimits,
  type NewPeriod,
  parseUsd,
  runningPeriod,
  type SpendLimits,
} from '../../domain/limits.ts';
import { checkPeriod, formatTime, type PeriodUnit, ttlEnd } from '../../domain/time.ts';
import type { BudgetRecord, KeyPatch, NewKeyLimits, WantedKeyLimits } from '../../generated/types.ts';
import { optional } from '../../lib/collections.ts';
import type { Database } from '../../store/db/database.ts';
import { type KeyRecord, listKeysOfMember } from '../../store/tenants/key-records.ts';
import { getOrganization } from '../../store/tenants/tenants.ts';
import { type Actor, isDeveloper } from '../audit/audit-trail.ts';

type LimitFields = Pick<
  KeyPatch,
  'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit' | 'periodUsageAlignment'
>;

/** The limits of a key or a budget that a change is judged together with. */
type PresentLimits = Pick<
  SpendLimits,
  'usageLimit' | 'periodUsageLimit' | 'periodUsageDurationValue' | 'periodUsageDurationUnit' | 'periodUsageAlignment'
>;

const AMOUNT = nullOr('an amount in USD: a plain decimal string such as "12.5", at most 9000000');

/** The rule for a field of a limit, for the answer to a wrong value. */
export const LIMIT_EXPLANATIONS = [
  { at: /\/(usageLimit|periodUsageLimit)$/, must: AMOUNT },
  { at: /\/periodUsageDurationValue$/, must: nullOr('a whole number of at least 1 and at most 8760') },
  { at: /\/periodUsageDurationUnit$/, must: nullOr('one of hour, day, week, month') },
  { at: /\/periodUsageAlignment$/, must: nullOr('calendar') },
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
  must: nullOr('a whole number from 1 to 1000000000'),
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

type LimitsView = Omit<BudgetRecord, 'id' | 'scope' | 'name' | 'state'>;

/** The limits of a key or a budget as admin JSON shows them, at `now` in epoch ms. */
export function viewLimits(limits: SpendLimits, now: number): LimitsView {
  const period = runningPeriod(limits, now);
  const shown = calendarWindow(limits, now) ?? period;
  return {
    usageLimit: optional(limits.usageLimit, formatUsd),
    usage: formatUsd(limits.usage),
    periodUsageLimit: optional(limits.periodUsageLimit, formatUsd),
    periodUsageDurationValue: limits.periodUsageDurationValue,
    periodUsageDurationUnit: limits.periodUsageDurationUnit,
    periodUsageAlignment: limits.periodUsageAlignment,
    currentPeriodUsage: optional(limits.periodUsageLimit, () => formatUsd(period?.usage ?? 0n)),
    currentPeriodStartedAt: optional(shown?.startedAt, formatTime),
    currentPeriodResetAt: optional(shown?.resetAt, formatTime),
  };
}

/** Limits of keys; null: as much, or as long, as one likes. */
interface KeyBounds extends NewLimits {
  /** Epoch ms. */
  readonly expiresAt: number | null;
}

/** Bounds of a key that a developer makes for themselves (src/admin/README.md, "Keys that developers make"). */
export interface NewKeyBounds {
  /** The most that they may ask for. */
  readonly most: KeyBounds;
  /** The key's limits where they ask for nothing. */
  readonly usual: KeyBounds;
  /** The key whose limits the new one shares. */
  readonly shared: KeyRecord | undefined;
}

const UNBOUND: KeyBounds = { usageLimit: null, period: null, expiresAt: null };

/** The present recurring limit in the form of a new one. */
const periodOf = (limits: PresentLimits): NewPeriod | null => newLimits({}, limits).period;

/** Hours of a window, to compare windows by; a month counts 730. */
const HOURS: Readonly<Record<PeriodUnit, bigint>> = { hour: 1n, day: 24n, week: 168n, month: 730n };

const hoursOf = ({ value, unit }: NewPeriod): bigint => BigInt(value) * HOURS[unit];

/** Negative where `a` leaves less an hour than `b`; at the same rate, where its window is shorter. */
function compareRates(a: NewPeriod, b: NewPeriod): number {
  const [perHour, other] = [a.limit * hoursOf(b), b.limit * hoursOf(a)];
  return perHour === other ? Number(hoursOf(a) - hoursOf(b)) : perHour < other ? -1 : 1;
}

const fits = (asked: NewPeriod, most: NewPeriod): boolean =>
  asked.limit <= most.limit && asked.limit * hoursOf(most) <= most.limit * hoursOf(asked);

const smallest = <Value extends bigint | number>(values: readonly (Value | null)[]): Value | null =>
  values.reduce((least, value) => (value !== null && (least === null || value < least) ? value : least), null);

/** The smallest of each limit that these keys have: the all-time one, the lowest recurring one an hour, the first end. */
function mostLimited(keys: readonly KeyRecord[]): KeyBounds {
  const periods = keys.map(periodOf).filter((period) => period !== null);
  return {
    usageLimit: smallest(keys.map(({ usageLimit }) => usageLimit)),
    period: periods.toSorted(compareRates)[0] ?? null,
    expiresAt: smallest(keys.map(({ expiresAt }) => expiresAt)),
  };
}

/** The key whose recurring limit is the lowest; where none has one, the key with the lowest all-time limit. */
function mostLimitedKey(keys: readonly KeyRecord[]): KeyRecord | undefined {
  const { period, usageLimit } = mostLimited(keys);
  const isIt = (key: KeyRecord): boolean => {
    const own = periodOf(key);
    return period === null ? key.usageLimit === usageLimit : own !== null && compareRates(own, period) === 0;
  };
  return period === null && usageLimit === null ? undefined : keys.find(isIt);
}

function boundsOfSetting(setting: NewKeyLimits, now: number): KeyBounds {
  const { ttl, ...limits } = setting;
  return {
    ...newLimits(limits, NO_LIMITS),
    expiresAt: ttl === null ? null : ttlEnd(now, ttl.value, ttl.unit),
  };
}

/** The organization's setting as it is stored. */
export const parseSetting = (json: string | null): NewKeyLimits | null => (json === null ? null : JSON.parse(json));

/** The setting in full, as it is stored and shown. @throws ApiError 400 naming the field */
export function settingOf({ ttl = null, ...wanted }: WantedKeyLimits, now: number): NewKeyLimits {
  const { usageLimit, period } = newLimits(wanted, NO_LIMITS, '/newKeyLimits');
  if (ttl !== null) ttlEnd(now, ttl.value, ttl.unit, '/newKeyLimits/ttl');
  return {
    usageLimit: usageLimit === null ? null : formatUsd(usageLimit),
    periodUsageLimit: period === null ? null : formatUsd(period.limit),
    periodUsageDurationValue: period?.value ?? null,
    periodUsageDurationUnit: period?.unit ?? null,
    periodUsageAlignment: period?.alignment ?? null,
    ttl,
  };
}

/**
 * Bounds of a new key of the actor's own; undefined for all but developers. Where the organization sets nothing, those of their keys
 * bind whose limits others chose: the ones in use, else the ones that are over, so that no one ends a key to be rid of its limits.
 * @param now epoch ms
 */
export function getNewKeyBounds(db: Database, actor: Actor, now: number): NewKeyBounds | undefined {
  if (actor.kind === 'cli' || actor.role !== 'developer') return undefined;
  const setting = parseSetting(getOrganization(db, actor.organizationId).newKeyLimitsJson);
  if (setting !== null) {
    const most = boundsOfSetting(setting, now);
    return { most, usual: most, shared: undefined };
  }
  const keys = listKeysOfMember(db, actor.organizationId, actor.memberId);
  const isInUse = (key: KeyRecord): boolean => ['active', 'limit_reached'].includes(keyState(key, now));
  const given = keys.filter(({ limitedBySelf }) => limitedBySelf === 0);
  const inUse = given.filter(isInUse);
  const binding = inUse.length > 0 ? inUse : given;
  const own = keys.filter((key) => key.limitedBySelf === 1 && key.sharesLimitsOf === null && isInUse(key));
  return {
    most: mostLimited(binding),
    usual: mostLimited([...binding, ...own]),
    shared: mostLimitedKey(binding),
  };
}

/** Sentence for a developer about the keys that they can make; undefined: they can make any. */
export function boundsText({ most, shared }: NewKeyBounds): string | undefined {
  const spend = [
    most.usageLimit === null ? [] : `${formatUsd(most.usageLimit)} USD in all`,
    most.period === null ? [] : periodText(most.period),
  ].flat();
  const facts = [
    spend.length === 0 ? [] : `can spend at most ${spend.join(' and ')}`,
    most.expiresAt === null ? [] : `can last until ${formatTime(most.expiresAt)} at most`,
    shared === undefined ? [] : `shares the limits of your key ${shared.description || shared.mask}`,
  ].flat();
  return facts.length === 0 ? undefined : `A key that you make ${facts.join(', ')}.`;
}

const ADVICE = 'An owner or an admin can allow more.';

/** `10 USD per 1 month` */
const periodText = ({ limit, value, unit, alignment }: NewPeriod): string =>
  `${formatUsd(limit)} USD per ${alignment === undefined ? `${value} ${unit}${value === 1 ? '' : 's'}` : `calendar ${unit}`}`;

function checkUsageLimit(asked: bigint | null, most: bigint | null): void {
  if (most === null || (asked !== null && asked <= most)) return;
  throw invalidRequest(
    `The all-time limit of this key can be at most ${formatUsd(most)} USD. ${ADVICE}`,
    '/usageLimit',
  );
}

function checkPeriodLimit(asked: NewPeriod | null, most: NewPeriod | null): void {
  if (most === null || (asked !== null && fits(asked, most))) return;
  throw invalidRequest(
    `The recurring limit of this key can be at most ${periodText(most)}, in no shorter time. ${ADVICE}`,
    '/periodUsageLimit',
  );
}

function checkExpiry(asked: number | null, most: number | null): void {
  if (most === null || (asked !== null && asked <= most)) return;
  throw invalidRequest(`This key can last until ${formatTime(most)} at most. ${ADVICE}`, '/expiresAt');
}

/** The limits and the end that are asked for; those that are not named are left open. */
interface WantedLimits {
  readonly named: Pick<KeyPatch, 'usageLimit' | 'periodUsageLimit'>;
  readonly limits: NewLimits;
  /** Undefined: nothing is asked; null: never. */
  readonly expiresAt: number | null | undefined;
}

/**
 * The limits of a new key: what was asked for, else what is usual.
 * @throws ApiError 400 that names the largest, or where the keys that bind it are over. @param now epoch ms
 */
export function boundKey(bounds: NewKeyBounds | undefined, asked: WantedLimits, now: number): KeyBounds {
  const { most, usual } = bounds ?? { most: UNBOUND, usual: UNBOUND };
  const { named, limits } = asked;
  const bound = {
    usageLimit: named.usageLimit === undefined ? usual.usageLimit : limits.usageLimit,
    period: named.periodUsageLimit === undefined ? usual.period : limits.period,
    expiresAt: asked.expiresAt === undefined ? usual.expiresAt : asked.expiresAt,
  };
  checkUsageLimit(bound.usageLimit, most.usageLimit);
  checkPeriodLimit(bound.period, most.period);
  checkExpiry(bound.expiresAt, most.expiresAt);
  if (most.expiresAt !== null && most.expiresAt <= now) {
    throw invalidRequest('Your keys have expired, so you cannot make another one. Ask an owner or an admin for a key.');
  }
  return bound;
}

const PERIOD_FIELDS = [
  'periodUsageLimit',
  'periodUsageDurationValue',
  'periodUsageDurationUnit',
  'periodUsageAlignment',
] as const;

/**
 * Checks a developer's change of the limits of their own key. A key whose limits others chose only gets lower ones; any other may have
 * what a new key could. A bound window keeps its length, since another length begins a new one.
 * @throws ApiError 400 that names the largest. @param now epoch ms
 */
export function checkNewLimits(
  db: Database,
  actor: Actor,
  key: KeyRecord,
  patch: KeyPatch,
  wanted: NewLimits,
  now: number,
): void {
  const bounds = getNewKeyBounds(db, actor, now);
  if (bounds === undefined) return;
  const present = newLimits({}, key);
  const most = key.limitedBySelf === 0 ? present : bounds.most;
  if (patch.usageLimit !== undefined) checkUsageLimit(wanted.usageLimit, most.usageLimit);
  if (!PERIOD_FIELDS.some((field) => patch[field] !== undefined) || most.period === null) return;
  checkPeriodLimit(wanted.period, most.period);
  const { period } = present;
  if (period === null || wanted.period === null) return;
  const isSame = (['value', 'unit', 'alignment'] as const).every((name) => period[name] === wanted.period?.[name]);
  if (!isSame) {
    throw invalidRequest(
      'The window of this key cannot be changed by a developer, because another one would begin at nothing.',
      '/periodUsageDurationValue',
    );
  }
}

/** Checks a developer's new end of their own key, as `checkNewLimits` does its limits. @param expiresAt null: never. @param now epoch ms */
export function checkNewEnd(db: Database, actor: Actor, key: KeyRecord, expiresAt: number | null, now: number): void {
  const bounds = getNewKeyBounds(db, actor, now);
  if (bounds === undefined) return;
  checkExpiry(expiresAt, key.limitedBySelf === 0 ? key.expiresAt : bounds.most.expiresAt);
}
