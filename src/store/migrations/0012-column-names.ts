import { entryOf } from '../../lib/text.ts';

/** What columns were called; from here on they have the names of the records (tables.ts). */
const OLD_NAMES = `
accepted_at actor_id actor_kind after_json base_url before_json cache_duration_seconds caching_enabled client_id client_name
compiled_json consumed_at context_length created_at created_by credential_id custom_provider_id deleted_at disabled_at display_name
email_hash encryption_key_id ended_at expires_at fields_json grant_id input_modalities_json invited_by json_output key_id last_used_at
locked_until max_output member_id organization_id output_modalities_json parallel_tool_calls password_hash payload_json pepper_id
period_limit_pico period_reserved_pico period_started_at period_unit period_usage_pico period_value previous_ends_at
previous_pepper_id previous_secret_hash prices_json project_id provider_id public_key removed_at reserved_pico revoked_at rp_id
rule_revision rule_type rule_value_json secret_hash structured_outputs subject_id supported_parameters_json target_id target_type
transports_json updated_at usage_limit_pico usage_pico used_at window_started_at`
  .trim()
  .split(/\s+/);

/** Where the record's name was another one. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  period_limit_pico: 'periodUsageLimit',
  period_reserved_pico: 'currentPeriodReserved',
  period_started_at: 'currentPeriodStartedAt',
  period_unit: 'periodUsageDurationUnit',
  period_usage_pico: 'currentPeriodUsage',
  period_value: 'periodUsageDurationValue',
  previous_ends_at: 'previousSecretEndsAt',
  provider_id: 'provider',
  reserved_pico: 'reserved',
  usage_limit_pico: 'usageLimit',
  usage_pico: 'usage',
};

const camelCase = (name: string): string => name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** Names by those until now, in all tables but those of the ledger. */
export const NEW_NAMES: ReadonlyMap<string, string> = new Map(
  OLD_NAMES.map((name) => [name, entryOf(OTHER_NAMES, name) ?? camelCase(name)]),
);

/** Tables whose columns kept their names. */
const KEPT_TABLES = ['calls', 'decisions', 'kept_usage', 'data_documents'];

/** Long names first: some hold others. */
const renamed = [...NEW_NAMES]
  .sort(([a], [b]) => b.length - a.length)
  .reduce((text, [before, after]) => `replace(${text}, '${before}', '${after}')`, 'sql');

/**
 * In the text of the schema, which takes a millisecond: ALTER TABLE reads the whole schema again for each of 150 columns, half a
 * second that every new database would pay. The text is the one that it makes. The table comes and goes to tell other connections.
 */
export const columnNames = `
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = ${renamed} WHERE tbl_name NOT IN (${KEPT_TABLES.map((table) => `'${table}'`).join(', ')});
PRAGMA writable_schema = RESET;
CREATE TABLE changed (id);
DROP TABLE changed;
`;
