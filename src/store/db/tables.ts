import type { Generated, Selectable } from 'kysely';
import type { KeyKind, KeyStatus } from '../../domain/api-key.ts';
import type { BudgetScope, PeriodAlignment } from '../../domain/limits.ts';
import type { WireFormat } from '../../domain/provider.ts';
import type { PeriodUnit } from '../../domain/time.ts';
import type { Scope } from '../../generated/types.ts';
import type {
  CallBlocksTable,
  CallIndexTable,
  CallOriginsTable,
  CallsView,
  CallTargetsTable,
  CallVerdictsTable,
  DataDocumentsTable,
  DecisionsView,
  Flag,
  KeptUsageTable,
  LedgerMarkTable,
  LedgerTable,
  RefusedRequestsTable,
  ReportMarkTable,
} from './call-tables.ts';

/**
 * Rows as they are stored. Times are epoch milliseconds, flags 0 or 1. Columns that are typed as bigint hold pico-dollars and are
 * read as BigInt, all other integers as numbers (sql.ts); columns that end in `Json` hold JSON text.
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
  groups: GroupsTable;
  group_holders: GroupHoldersTable;
  subject_rules: SubjectRulesTable;
  rules: RulesTable;
  custom_providers: CustomProvidersTable;
  custom_models: CustomModelsTable;
  provider_keys: ProviderKeysTable;
  tag_sets: TagSetsTable;
  aliases: AliasesTable;
  audit: AuditTable;
  ledger: LedgerTable;
  ledger_mark: LedgerMarkTable;
  call_origins: CallOriginsTable;
  call_verdicts: CallVerdictsTable;
  call_targets: CallTargetsTable;
  data_documents: DataDocumentsTable;
  calls: CallsView;
  decisions: DecisionsView;
  call_index: CallIndexTable;
  call_blocks: CallBlocksTable;
  report_mark: ReportMarkTable;
  refused_requests: RefusedRequestsTable;
  kept_usage: KeptUsageTable;
  compiled_parts: TextPartsTable;
  rule_parts: TextPartsTable;
  oauth_items: OAuthItemsTable;
  oauth_grants: OAuthGrantsTable;
}

/** A row as read from a table, whole or some of its columns. */
export type Row<Table, Column extends keyof Selectable<Table> = keyof Selectable<Table>> = Readonly<
  Pick<Selectable<Table>, Column>
>;

export type Plan = 'free' | 'pro' | 'enterprise';
export type Role = 'owner' | 'admin' | 'developer';

/** Limits a minute; null: unlimited. */
interface MinuteColumns {
  requestsPerMinute: Generated<number | null>;
  tokensPerMinute: Generated<number | null>;
}

export interface OrganizationsTable extends MinuteColumns {
  id: string;
  name: string;
  plan: Generated<Plan>;
  /** Grows by one with every write of a rule or of tags, and with every change of who is in a group. */
  ruleRevision: Generated<number>;
  /** Maximum limits of keys that developers make; null: those of the developer's most limited key. */
  newKeyLimitsJson: Generated<string | null>;
  createdAt: number;
  updatedAt: number;
}

export interface ProjectsTable extends MinuteColumns {
  id: string;
  organizationId: string;
  name: string;
  cachingEnabled: Generated<Flag>;
  cacheDurationSeconds: Generated<number>;
  createdAt: number;
  updatedAt: number;
  deletedAt: Generated<number | null>;
}

export interface MembersTable extends MinuteColumns {
  id: string;
  organizationId: string;
  /** Lower case; unique among the organization's present members. */
  email: string;
  name: Generated<string | null>;
  role: Role;
  passwordHash: Generated<string | null>;
  createdAt: number;
  updatedAt: number;
  removedAt: Generated<number | null>;
}

/** The stored form of a secret. */
export interface StoredSecret {
  /** HMAC-SHA-256, hex. */
  secretHash: string;
  pepperId: string;
  mask: string;
}

/** The way in which a session began. */
export type SignInMethod = 'password' | 'passkey' | 'link' | 'invitation';

/** Sessions of members who signed in with a browser. */
export interface SessionsTable {
  id: string;
  organizationId: string;
  memberId: string;
  /** HMAC-SHA-256 of the cookie's value, hex. */
  secretHash: string;
  method: SignInMethod;
  createdAt: number;
  /** To within a few minutes. */
  lastUsedAt: number;
  /** However much it is used. */
  expiresAt: number;
}

/** Links with which a member signs in once. */
export interface SignInLinksTable {
  id: string;
  organizationId: string;
  memberId: string;
  secretHash: string;
  createdAt: number;
  expiresAt: number;
  usedAt: Generated<number | null>;
}

/** WebAuthn credentials; binary values in base64url. */
export interface PasskeysTable {
  id: string;
  organizationId: string;
  memberId: string;
  /** The host name for which it was made, and at which alone it works. */
  rpId: string;
  credentialId: string;
  /** COSE. */
  publicKey: string;
  /** The authenticator's counter; 0 if it does not count. */
  counter: number;
  transportsJson: string;
  label: string;
  createdAt: number;
  lastUsedAt: Generated<number | null>;
}

/** Attempts to sign in by password, by e-mail, whether a member has it or not. */
export interface SignInFailuresTable {
  /** HMAC-SHA-256, hex. */
  emailHash: string;
  failures: number;
  windowStartedAt: number;
  lockedUntil: number | null;
}

export interface MasterKeysTable extends StoredSecret {
  id: string;
  organizationId: string;
  /** The member who made the key: it acts with their current role. */
  memberId: string;
  description: string;
  createdAt: number;
  updatedAt: number;
  lastUsedAt: Generated<number | null>;
  deletedAt: Generated<number | null>;
}

export interface InvitationsTable extends StoredSecret {
  id: string;
  organizationId: string;
  /** Lower case. */
  email: string;
  role: Role;
  /** Null: the command line. */
  invitedBy: string | null;
  createdAt: number;
  updatedAt: number;
  expiresAt: number;
  acceptedAt: Generated<number | null>;
  /** The member it became; set together with `acceptedAt`. */
  memberId: Generated<string | null>;
  revokedAt: Generated<number | null>;
}

/** Spend limits and what was spent of them: of a key, or a budget. */
export interface SpendColumns {
  usageLimit: Generated<bigint | null>;
  usage: Generated<bigint>;
  /** Held back by open calls. */
  reserved: Generated<bigint>;
  periodUsageLimit: Generated<bigint | null>;
  periodUsageDurationValue: Generated<number | null>;
  periodUsageDurationUnit: Generated<PeriodUnit | null>;
  periodUsageAlignment: Generated<PeriodAlignment | null>;
  currentPeriodUsage: Generated<bigint>;
  currentPeriodReserved: Generated<bigint>;
  currentPeriodStartedAt: Generated<number | null>;
}

export interface KeysTable extends StoredSecret, SpendColumns, MinuteColumns {
  id: string;
  organizationId: string;
  projectId: string;
  /** The member who owns the key. */
  createdBy: string;
  description: string;
  kind: Generated<KeyKind>;
  status: Generated<KeyStatus>;
  disabledAt: Generated<number | null>;
  deletedAt: Generated<number | null>;
  expiresAt: Generated<number | null>;
  lastUsedAt: Generated<number | null>;
  /** Hash of the secret before the last roll, if that was with an overlap; the three are null together. */
  previousSecretHash: Generated<string | null>;
  previousPepperId: Generated<string | null>;
  /** Until then that secret is accepted too. */
  previousSecretEndsAt: Generated<number | null>;
  /** Sorted, without repeats. */
  tagsJson: Generated<string>;
  /** Its owner, a developer, chose its limits. */
  limitedBySelf: Generated<Flag>;
  /** The key whose limits bind this one too: what this one spends is booked there as well. */
  sharesLimitsOf: Generated<string | null>;
  createdAt: number;
  updatedAt: number;
}

/** There is a row only where there is a limit. */
export interface BudgetsTable extends SpendColumns {
  /** The member, the project or the organization whose keys share it. */
  subjectId: string;
  organizationId: string;
  scope: BudgetScope;
}

/** Members and keys that rules bind together. */
export interface GroupsTable {
  id: string;
  organizationId: string;
  /** Unique among the organization's present groups. */
  name: string;
  description: Generated<string | null>;
  createdAt: number;
  updatedAt: number;
  deletedAt: Generated<number | null>;
}

/** Members and keys in a group. */
export interface GroupHoldersTable {
  organizationId: string;
  groupId: string;
  /** A member or a key. */
  holderId: string;
}

/** One row for every subject that rules can be attached to, made together with it. */
interface SubjectRulesTable {
  subjectId: string;
  organizationId: string;
  scope: Scope;
  /** Compiled text of the subject's active rules, its part of the policy's data document; a long one in parts (text-parts.ts). */
  compiledJson: Generated<string>;
  /** The organization's rule revision at which the text was compiled. */
  revision: Generated<number>;
}

export interface RulesTable {
  id: string;
  organizationId: string;
  subjectId: string;
  scope: Scope;
  ruleType: string;
  /** As written; a long one in parts (text-parts.ts). */
  ruleValueJson: string;
  mode: Generated<'enforce' | 'report'>;
  status: Generated<'active' | 'inactive'>;
  description: Generated<string | null>;
  createdAt: number;
  updatedAt: number;
  /** Since when it reports as it is, in epoch ms; null: it does not. */
  reportsSince: Generated<number | null>;
  /** The organization's rule revision from which on decisions saw it so. */
  reportRevision: Generated<number | null>;
  /** Decisions since then that name it in their shadow, of those that are counted already (call-follower.ts). */
  wouldDeny: Generated<number>;
  wouldAllow: Generated<number>;
  /** When the last of them was made, in epoch ms. */
  lastSeenAt: Generated<number | null>;
  /** The policy folder that states the rule, and its name there; both null where none does. */
  managedBy: Generated<string | null>;
  managedName: Generated<string | null>;
}

export interface CustomProvidersTable {
  id: string;
  organizationId: string;
  /** Unique among the organization's present custom providers; never changed. */
  name: string;
  wire: WireFormat;
  baseUrl: string;
  keyless: Flag;
  fieldsJson: Generated<string>;
  createdAt: number;
  updatedAt: number;
  deletedAt: Generated<number | null>;
}

export interface CustomModelsTable {
  id: string;
  organizationId: string;
  customProviderId: string;
  /** The upstream's own id; unique among the provider's present models. */
  model: string;
  displayName: string;
  /** Decimal strings in USD by the names of `Prices`; unknown ones are absent. */
  pricesJson: string;
  contextLength: number | null;
  maxOutput: number | null;
  streaming: Flag;
  vision: Flag;
  tools: Flag;
  parallelToolCalls: Flag;
  reasoning: Flag;
  jsonOutput: Flag;
  structuredOutputs: Flag;
  inputModalitiesJson: string;
  outputModalitiesJson: string;
  /** Null: unknown. */
  supportedParametersJson: string | null;
  status: 'active' | 'inactive';
  createdAt: number;
  updatedAt: number;
  deletedAt: Generated<number | null>;
}

export interface TagSetsTable {
  id: string;
  organizationId: string;
  /** A name of a model, bare or behind its provider, or `<provider>/*`; unique in its organization. */
  target: string;
  /** Sorted, without repeats, at least one. */
  tagsJson: string;
  createdAt: number;
  updatedAt: number;
}

export interface AliasesTable {
  id: string;
  organizationId: string;
  /** Null: every project of the organization. */
  projectId: string | null;
  /** A request's `model`; unique in its organization or project. */
  name: string;
  /** Names of models, in the order in which they are tried; at least one. */
  modelsJson: string;
  /** One for each model; null: the first model comes first. */
  weightsJson: string | null;
  createdAt: number;
  updatedAt: number;
}

export interface ProviderKeysTable {
  id: string;
  organizationId: string;
  /** Null: every project of the organization. */
  projectId: string | null;
  /** Id of a catalogue provider, or `custom:<name>`. */
  provider: string;
  label: string;
  /** AES-256-GCM under the server's encryption key. */
  ciphertext: string;
  encryptionKeyId: string;
  mask: string;
  baseUrl: string | null;
  /** Place in the order in which the keys of one provider are tried; ties go by id. */
  position: number;
  status: 'active' | 'inactive';
  createdAt: number;
  updatedAt: number;
  deletedAt: Generated<number | null>;
}

/** Kind of actor behind a change: a member at the dashboard, a master key, the command line, or one of the server's own jobs. */
export type AuditActorKind = 'person' | 'master_key' | 'cli' | 'job';

/** One chain over the whole installation; append-only by triggers. */
export interface AuditTable {
  /** From 1 on, without gaps. */
  seq: number;
  id: string;
  organizationId: string;
  createdAt: number;
  actorKind: AuditActorKind;
  /** The master key's id, the job's name, or the system user of the command line; null where the kind says it all. */
  actorId: string | null;
  /** The person, or the maker of the master key. */
  memberId: string | null;
  /** `key.create`: the kind of the target, a dot, what was done to it. */
  action: string;
  targetType: string;
  targetId: string;
  /** Null: there was nothing. */
  beforeJson: string | null;
  /** Null: there is nothing left. */
  afterJson: string | null;
  /** Digests of the rows that the change touched (state-seals.ts); null: none. */
  stateJson: Generated<string | null>;
  /** Over this entry and the `hmac` of the one before it. */
  hmac: string;
}

/** Parts of long texts (text-parts.ts). */
interface TextPartsTable {
  id: Generated<number>;
  /** Digest of the owner and the text. */
  digest: string;
  text: string;
}

interface OAuthItemsTable {
  model: string;
  /** SHA-256 hash of an id that is a secret, else the id itself. */
  id: string;
  payloadJson: string;
  /** A row of `oauth_grants`, once there is one; items of one grant end together. */
  grantId: string | null;
  uid: string | null;
  createdAt: number;
  consumedAt: Generated<number | null>;
  expiresAt: number | null;
  /** For a client: its registrant, until someone allows it if that is an address. */
  registrant: string | null;
}

export interface OAuthGrantsTable {
  /** The authorization server's id of the grant; the client's id where it acts by itself. */
  id: string;
  organizationId: string;
  /** The member who allowed it. */
  memberId: string;
  keyId: string;
  clientId: string;
  clientName: string;
  createdAt: number;
  endedAt: Generated<number | null>;
  /** 1: the secret of the key made it, by registering; 0: a member did. */
  isRegisteredByKey: number;
  /** When it ends by itself, with the secret that made it; null: never. */
  endsAt: Generated<number | null>;
}
