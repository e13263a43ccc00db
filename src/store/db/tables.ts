import type { Generated } from 'kysely';
import type { KeyKind, KeyStatus } from '../../domain/api-key.ts';
import type { WireFormat } from '../../domain/provider.ts';
import type { BudgetScope } from '../../domain/spend-limits.ts';
import type { PeriodUnit } from '../../domain/time.ts';

/**
 * Rows as they are stored. Times are epoch milliseconds, flags 0 or 1. Columns that end in `_pico` hold pico-dollars and are
 * read as BigInt, all other integers as numbers (sql.ts); columns that end in `_json` hold JSON text.
 */
export interface Tables {
  organizations: OrganizationsTable;
  projects: ProjectsTable;
  members: MembersTable;
  master_keys: MasterKeysTable;
  invitations: InvitationsTable;
  sessions: SessionsTable;
  sign_in_links: SignInLinksTable;
  passkeys: PasskeysTable;
  sign_in_failures: SignInFailuresTable;
  keys: KeysTable;
  budgets: BudgetsTable;
  subject_rules: SubjectRulesTable;
  rules: RulesTable;
  custom_providers: CustomProvidersTable;
  custom_models: CustomModelsTable;
  provider_keys: ProviderKeysTable;
  audit: AuditTable;
  calls: CallsTable;
  kept_usage: KeptUsageTable;
  decisions: DecisionsTable;
  data_documents: DataDocumentsTable;
  compiled_parts: TextPartsTable;
  rule_parts: TextPartsTable;
  oauth_items: OAuthItemsTable;
  oauth_grants: OAuthGrantsTable;
}

export type Flag = 0 | 1;
export type Plan = 'free' | 'pro' | 'enterprise';
export type Role = 'owner' | 'admin' | 'developer';
export type Scope = 'organization' | 'member' | 'key';

export interface OrganizationsTable {
  id: string;
  name: string;
  plan: Generated<Plan>;
  /** Grows by one with every write of a rule. */
  rule_revision: Generated<number>;
  created_at: number;
  updated_at: number;
}

export interface ProjectsTable {
  id: string;
  organization_id: string;
  name: string;
  caching_enabled: Generated<Flag>;
  cache_duration_seconds: Generated<number>;
  created_at: number;
  updated_at: number;
  deleted_at: Generated<number | null>;
}

export interface MembersTable {
  id: string;
  organization_id: string;
  /** Lower case; unique among the organization's present members. */
  email: string;
  name: Generated<string | null>;
  role: Role;
  password_hash: Generated<string | null>;
  created_at: number;
  updated_at: number;
  removed_at: Generated<number | null>;
}

interface SecretColumns {
  /** HMAC-SHA-256, hex. */
  secret_hash: string;
  pepper_id: string;
  mask: string;
}

/** How a session began. */
export type SignInMethod = 'password' | 'passkey' | 'link' | 'invitation';

/** Of members who have signed in with a browser. */
export interface SessionsTable {
  id: string;
  organization_id: string;
  member_id: string;
  /** HMAC-SHA-256 of the cookie's value, hex. */
  secret_hash: string;
  method: SignInMethod;
  created_at: number;
  /** To within a few minutes. */
  last_used_at: number;
  /** However much it is used. */
  expires_at: number;
}

/** Links with which a member signs in once. */
export interface SignInLinksTable {
  id: string;
  organization_id: string;
  member_id: string;
  secret_hash: string;
  created_at: number;
  expires_at: number;
  used_at: Generated<number | null>;
}

/** WebAuthn credentials; binary values in base64url. */
export interface PasskeysTable {
  id: string;
  organization_id: string;
  member_id: string;
  /** The host name for which it was made, and at which alone it works. */
  rp_id: string;
  credential_id: string;
  /** COSE. */
  public_key: string;
  /** Of the authenticator; 0 where it does not count. */
  counter: number;
  transports_json: string;
  label: string;
  created_at: number;
  last_used_at: Generated<number | null>;
}

/** Attempts to sign in by password, by e-mail, whether a member has it or not. */
export interface SignInFailuresTable {
  /** HMAC-SHA-256, hex. */
  email_hash: string;
  failures: number;
  window_started_at: number;
  locked_until: number | null;
}

export interface MasterKeysTable extends SecretColumns {
  id: string;
  organization_id: string;
  /** Who made it: it acts with this member's current role. */
  member_id: string;
  description: string;
  created_at: number;
  updated_at: number;
  last_used_at: Generated<number | null>;
  deleted_at: Generated<number | null>;
}

export interface InvitationsTable extends SecretColumns {
  id: string;
  organization_id: string;
  /** Lower case. */
  email: string;
  role: Role;
  /** Null: the command line. */
  invited_by: string | null;
  created_at: number;
  updated_at: number;
  expires_at: number;
  accepted_at: Generated<number | null>;
  /** The member it became; set together with `accepted_at`. */
  member_id: Generated<string | null>;
  revoked_at: Generated<number | null>;
}

/** Spend limits and what was spent of them: of a key, or a budget. */
export interface SpendColumns {
  usage_limit_pico: Generated<bigint | null>;
  usage_pico: Generated<bigint>;
  /** Held back by open calls. */
  reserved_pico: Generated<bigint>;
  period_limit_pico: Generated<bigint | null>;
  period_value: Generated<number | null>;
  period_unit: Generated<PeriodUnit | null>;
  period_usage_pico: Generated<bigint>;
  period_reserved_pico: Generated<bigint>;
  period_started_at: Generated<number | null>;
}

export interface KeysTable extends SecretColumns, SpendColumns {
  id: string;
  organization_id: string;
  project_id: string;
  /** The member who owns the key. */
  created_by: string;
  description: string;
  kind: Generated<KeyKind>;
  status: Generated<KeyStatus>;
  disabled_at: Generated<number | null>;
  deleted_at: Generated<number | null>;
  expires_at: Generated<number | null>;
  last_used_at: Generated<number | null>;
  /** Of the secret before the last roll, if that was with an overlap; the three are null together. */
  previous_secret_hash: Generated<string | null>;
  previous_pepper_id: Generated<string | null>;
  /** Until then that secret is accepted too. */
  previous_ends_at: Generated<number | null>;
  created_at: number;
  updated_at: number;
}

/** There is a row only where there is a limit. */
export interface BudgetsTable extends SpendColumns {
  /** The member, the project or the organization whose keys share it. */
  subject_id: string;
  organization_id: string;
  scope: BudgetScope;
}

/** One row for every subject that rules can be attached to, made together with it. */
interface SubjectRulesTable {
  subject_id: string;
  organization_id: string;
  scope: Scope;
  /** Compiled text of the subject's active rules, its part of the policy's data document; a long one in parts (text-parts.ts). */
  compiled_json: Generated<string>;
  /** The organization's rule revision at which the text was compiled. */
  revision: Generated<number>;
}

export interface RulesTable {
  id: string;
  organization_id: string;
  subject_id: string;
  scope: Scope;
  rule_type: string;
  /** As written; a long one in parts (text-parts.ts), as is the canonical value. */
  rule_value_json: string;
  mode: Generated<'enforce' | 'report'>;
  status: Generated<'active' | 'inactive'>;
  description: Generated<string | null>;
  created_at: number;
  updated_at: number;
}

export interface CustomProvidersTable {
  id: string;
  organization_id: string;
  /** Unique among the organization's present custom providers; never changed. */
  name: string;
  wire: WireFormat;
  base_url: string;
  keyless: Flag;
  fields_json: Generated<string>;
  created_at: number;
  updated_at: number;
  deleted_at: Generated<number | null>;
}

export interface CustomModelsTable {
  id: string;
  organization_id: string;
  custom_provider_id: string;
  /** The upstream's own id; unique among the provider's present models. */
  model: string;
  display_name: string;
  /** Decimal strings in USD by the names of `Prices`; unknown ones are absent. */
  prices_json: string;
  context_length: number | null;
  max_output: number | null;
  streaming: Flag;
  vision: Flag;
  tools: Flag;
  parallel_tool_calls: Flag;
  reasoning: Flag;
  json_output: Flag;
  structured_outputs: Flag;
  input_modalities_json: string;
  output_modalities_json: string;
  /** Null: unknown. */
  supported_parameters_json: string | null;
  status: 'active' | 'inactive';
  created_at: number;
  updated_at: number;
  deleted_at: Generated<number | null>;
}

export interface ProviderKeysTable {
  id: string;
  organization_id: string;
  /** Null: every project of the organization. */
  project_id: string | null;
  /** Id of a catalogue provider, or `custom:<name>`. */
  provider_id: string;
  label: string;
  /** AES-256-GCM under the server's encryption key. */
  ciphertext: string;
  encryption_key_id: string;
  mask: string;
  base_url: string | null;
  /** Place in the order in which the keys of one provider are tried; ties go by id. */
  position: number;
  status: 'active' | 'inactive';
  created_at: number;
  updated_at: number;
  deleted_at: Generated<number | null>;
}

/** Who made a change: a member at the dashboard, a master key, the command line, or one of the server's own jobs. */
export type AuditActorKind = 'person' | 'master_key' | 'cli' | 'job';

/** One chain over the whole installation; append-only by triggers. */
export interface AuditTable {
  /** From 1 on, without gaps. */
  seq: number;
  id: string;
  organization_id: string;
  created_at: number;
  actor_kind: AuditActorKind;
  /** The master key's id, the job's name, or the system user of the command line; null where the kind says it all. */
  actor_id: string | null;
  /** The person, or the maker of the master key. */
  member_id: string | null;
  /** `key.create`: the kind of the target, a dot, what was done to it. */
  action: string;
  target_type: string;
  target_id: string;
  before_json: string | null;
  after_json: string | null;
  /** Over this entry and the `hmac` of the one before it. */
  hmac: string;
}

type CallState = 'open' | 'settled' | 'denied' | 'recovered' | 'released';

export interface CallsTable {
  id: string;
  organization_id: string;
  project_id: string;
  key_id: string;
  member_id: string;
  decision_id: string;
  state: CallState;
  action: string;
  request_id: string;
  client_request_id: Generated<string | null>;
  client_address: Generated<string | null>;
  /** The MCP tool that was called; null for other doors. */
  tool: Generated<string | null>;
  requested_model: string;
  stream: Flag;
  created_at: number;
  reservation_pico: Generated<bigint>;
  /** Begin of the recurring window in which the call was opened and to which its cost belongs. */
  period_started_at: Generated<number | null>;
  /** The same of the budgets of the key's owner, its project and its organization. */
  member_period_started_at: Generated<number | null>;
  project_period_started_at: Generated<number | null>;
  organization_period_started_at: Generated<number | null>;
  settled_at: Generated<number | null>;
  cost_pico: Generated<bigint>;
  /** A price that it needed was not known: its cost leaves something out. */
  price_unknown: Generated<Flag>;
  /** The parts of the cost, as decimal strings in USD. */
  cost_details_json: Generated<string | null>;
  prompt_tokens: Generated<number>;
  completion_tokens: Generated<number>;
  reasoning_tokens: Generated<number>;
  cached_tokens: Generated<number>;
  cache_write_tokens: Generated<number>;
  usage_estimated: Generated<Flag>;
  /** Served from the cache. */
  cached: Generated<Flag>;
  provider_id: Generated<string | null>;
  model_id: Generated<string | null>;
  provider_key_id: Generated<string | null>;
  attempts_json: Generated<string | null>;
  status_code: Generated<number | null>;
  error_code: Generated<string | null>;
}

/** Sums of an hour's calls that retention has deleted, told apart as in usage reports. */
export interface KeptUsageTable {
  /** Begin of the hour. */
  hour: number;
  organization_id: string;
  project_id: string;
  key_id: string;
  member_id: string;
  /** Empty: none. */
  model_id: string;
  /** Empty: none. */
  provider_id: string;
  calls: number;
  errors: number;
  denied: number;
  limit_refusals: number;
  cache_hits: number;
  estimated_calls: number;
  unknown_price_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  reasoning_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  high_pico: bigint;
  low_pico: bigint;
}

export interface DecisionsTable {
  id: string;
  organization_id: string;
  key_id: string;
  call_id: string;
  created_at: number;
  action: string;
  requested_model: string;
  outcome: 'permit' | 'deny';
  reason_json: Generated<string | null>;
  violations_json: string;
  shadow_json: Generated<string | null>;
  bundle_digest: string;
  data_digest: string;
  rule_revision: number;
  /** The policy's whole input, so that the decision can be replayed. */
  input_json: string;
}

interface DataDocumentsTable {
  digest: string;
  /** The text, or its pieces (text-parts.ts). */
  text: string;
  created_at: number;
}

/** Parts of long texts (text-parts.ts). */
interface TextPartsTable {
  id: Generated<number>;
  /** Of the owner and the text; of those that the migration made, another text that nothing equals. */
  digest: string;
  text: string;
}

interface OAuthItemsTable {
  model: string;
  /** Of what is a secret the SHA-256 hash, else the id itself. */
  id: string;
  payload_json: string;
  /** A row of `oauth_grants`, once there is one; items of one grant end together. */
  grant_id: string | null;
  uid: string | null;
  created_at: number;
  consumed_at: Generated<number | null>;
  expires_at: number | null;
}

interface OAuthGrantsTable {
  id: string;
  organization_id: string;
  /** Who allowed it. */
  member_id: string;
  key_id: string;
  client_id: string;
  client_name: string;
  created_at: number;
  ended_at: Generated<number | null>;
}
