import type { Selectable } from 'kysely';
import type { SpendState } from '../domain/reservation.ts';
import type { KeysTable } from './tables.ts';

/** The columns of which a key's state and its room to spend are derived, by their names in the domain. */
type KeyStateRow = Pick<
  Selectable<KeysTable>,
  | 'kind'
  | 'status'
  | 'disabled_at'
  | 'deleted_at'
  | 'expires_at'
  | 'usage_limit_pico'
  | 'usage_pico'
  | 'reserved_pico'
  | 'period_limit_pico'
  | 'period_value'
  | 'period_unit'
  | 'period_usage_pico'
  | 'period_reserved_pico'
  | 'period_started_at'
>;

export const KEY_STATE_COLUMNS = [
  'keys.kind',
  'keys.status',
  'keys.disabled_at',
  'keys.deleted_at',
  'keys.expires_at',
  'keys.usage_limit_pico',
  'keys.usage_pico',
  'keys.reserved_pico',
  'keys.period_limit_pico',
  'keys.period_value',
  'keys.period_unit',
  'keys.period_usage_pico',
  'keys.period_reserved_pico',
  'keys.period_started_at',
] as const;

export const toApiKey = (row: KeyStateRow): SpendState => ({
  kind: row.kind,
  status: row.status,
  disabledAt: row.disabled_at,
  deletedAt: row.deleted_at,
  expiresAt: row.expires_at,
  usageLimit: row.usage_limit_pico,
  usage: row.usage_pico,
  reserved: row.reserved_pico,
  periodUsageLimit: row.period_limit_pico,
  periodUsageDurationValue: row.period_value,
  periodUsageDurationUnit: row.period_unit,
  currentPeriodUsage: row.period_usage_pico,
  currentPeriodReserved: row.period_reserved_pico,
  currentPeriodStartedAt: row.period_started_at,
});
