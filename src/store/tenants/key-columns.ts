import type { Selectable } from 'kysely';
import type { ApiKey } from '../../domain/api-key.ts';
import type { SpendState } from '../../domain/spend-limits.ts';
import { type SpendRow, toSpendState } from '../budgets/spend-columns.ts';
import type { KeysTable } from '../db/tables.ts';

/** The columns of which a key's state and its room to spend are derived, by their names in the domain. */
type KeyStateRow = SpendRow &
  Pick<Selectable<KeysTable>, 'kind' | 'status' | 'disabled_at' | 'deleted_at' | 'expires_at'>;

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

export const toApiKey = (row: KeyStateRow): ApiKey & SpendState => ({
  kind: row.kind,
  status: row.status,
  disabledAt: row.disabled_at,
  deletedAt: row.deleted_at,
  expiresAt: row.expires_at,
  ...toSpendState(row),
});
