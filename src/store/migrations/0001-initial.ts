import { calls } from './0001-calls.ts';

// The schema of version 0.2.0, in two files: calls are in 0001-calls.ts. Ids sort by time and are the primary keys, so that rows are
// appended at the end of each table. Short rows live in their primary key (WITHOUT ROWID). Tables with long rows do not, because
// there a row of more than a quarter of a page spills into a page of its own (measured: the rules of three subjects in random order
// 58 instead of 18 µs). tables.ts explains the columns.

/** Organizations and who belongs to them. */
const organizations = `
CREATE TABLE organizations (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  plan TEXT NOT NULL DEFAULT 'enterprise' CHECK (plan IN ('free', 'pro', 'enterprise')),
  ruleRevision INTEGER NOT NULL DEFAULT 0,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  newKeyLimitsJson TEXT,
  requestsPerMinute INTEGER CHECK (requestsPerMinute > 0),
  tokensPerMinute INTEGER CHECK (tokensPerMinute > 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  name TEXT NOT NULL,
  cachingEnabled INTEGER NOT NULL DEFAULT 1 CHECK (cachingEnabled IN (0, 1)),
  cacheDurationSeconds INTEGER NOT NULL DEFAULT 60 CHECK (cacheDurationSeconds BETWEEN 10 AND 31536000),
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER,
  requestsPerMinute INTEGER CHECK (requestsPerMinute > 0),
  tokensPerMinute INTEGER CHECK (tokensPerMinute > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX projects_by_organization ON projects (organizationId, id);

CREATE TABLE members (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL CHECK (email = lower(email)),
  name TEXT,
  role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'developer')),
  passwordHash TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  removedAt INTEGER,
  requestsPerMinute INTEGER CHECK (requestsPerMinute > 0),
  tokensPerMinute INTEGER CHECK (tokensPerMinute > 0)
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_organization ON members (organizationId, id);
CREATE UNIQUE INDEX members_by_email ON members (organizationId, email) WHERE removedAt IS NULL;
CREATE INDEX members_signing_in ON members (email, id) WHERE removedAt IS NULL AND passwordHash IS NOT NULL;

CREATE TABLE master_keys (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  memberId TEXT NOT NULL REFERENCES members (id),
  description TEXT NOT NULL,
  secretHash TEXT NOT NULL UNIQUE,
  pepperId TEXT NOT NULL,
  mask TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  lastUsedAt INTEGER,
  deletedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX master_keys_by_organization ON master_keys (organizationId, id);

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  email TEXT NOT NULL CHECK (email = lower(email)),
  role TEXT NOT NULL CHECK (role IN ('owner', 'admin', 'developer')),
  invitedBy TEXT REFERENCES members (id),
  secretHash TEXT NOT NULL UNIQUE,
  pepperId TEXT NOT NULL,
  mask TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  acceptedAt INTEGER,
  memberId TEXT REFERENCES members (id),
  revokedAt INTEGER,
  CHECK ((acceptedAt IS NULL) = (memberId IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_by_organization ON invitations (organizationId, id);
CREATE INDEX open_invitations ON invitations (organizationId, email) WHERE acceptedAt IS NULL AND revokedAt IS NULL;

CREATE TABLE groups (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  name TEXT NOT NULL,
  description TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX groups_by_organization ON groups (organizationId, id);
CREATE UNIQUE INDEX groups_by_name ON groups (organizationId, name) WHERE deletedAt IS NULL;

CREATE TABLE group_holders (
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  groupId TEXT NOT NULL REFERENCES groups (id),
  holderId TEXT NOT NULL,
  PRIMARY KEY (holderId, groupId)
) STRICT, WITHOUT ROWID;
CREATE INDEX group_holders_by_group ON group_holders (groupId, holderId);
`;

/** Gateway keys, and the spend limits that they share by member, project or organization. */
const keys = `
CREATE TABLE keys (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  projectId TEXT NOT NULL REFERENCES projects (id),
  createdBy TEXT NOT NULL REFERENCES members (id),
  description TEXT NOT NULL,
  kind TEXT NOT NULL DEFAULT 'regular' CHECK (kind IN ('regular', 'playground', 'platform_secret')),
  secretHash TEXT NOT NULL UNIQUE,
  pepperId TEXT NOT NULL,
  mask TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
  disabledAt INTEGER,
  deletedAt INTEGER,
  expiresAt INTEGER,
  usageLimit INTEGER,
  usage INTEGER NOT NULL DEFAULT 0,
  reserved INTEGER NOT NULL DEFAULT 0,
  periodUsageLimit INTEGER,
  periodUsageDurationValue INTEGER,
  periodUsageDurationUnit TEXT CHECK (periodUsageDurationUnit IN ('hour', 'day', 'week', 'month')),
  currentPeriodUsage INTEGER NOT NULL DEFAULT 0,
  currentPeriodReserved INTEGER NOT NULL DEFAULT 0,
  currentPeriodStartedAt INTEGER,
  lastUsedAt INTEGER,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  previousSecretHash TEXT,
  previousPepperId TEXT,
  previousSecretEndsAt INTEGER,
  tagsJson TEXT NOT NULL DEFAULT '[]',
  periodUsageAlignment TEXT CHECK (periodUsageAlignment = 'calendar'),
  limitedBySelf INTEGER NOT NULL DEFAULT 0 CHECK (limitedBySelf IN (0, 1)),
  sharesLimitsOf TEXT REFERENCES keys (id),
  requestsPerMinute INTEGER CHECK (requestsPerMinute > 0),
  tokensPerMinute INTEGER CHECK (tokensPerMinute > 0),
  CHECK ((periodUsageLimit IS NULL) = (periodUsageDurationValue IS NULL) AND (periodUsageDurationValue IS NULL) = (periodUsageDurationUnit IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_by_organization ON keys (organizationId, id);
CREATE INDEX keys_by_member ON keys (createdBy);
CREATE INDEX keys_by_expiry ON keys (expiresAt) WHERE status = 'active' AND expiresAt IS NOT NULL;
CREATE UNIQUE INDEX playground_keys ON keys (createdBy, projectId) WHERE kind = 'playground' AND deletedAt IS NULL;
CREATE UNIQUE INDEX keys_by_previous_secret ON keys (previousSecretHash) WHERE previousSecretHash IS NOT NULL;
CREATE INDEX keys_by_shared_limits ON keys (sharesLimitsOf) WHERE sharesLimitsOf IS NOT NULL;

CREATE TABLE budgets (
  subjectId TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  scope TEXT NOT NULL CHECK (scope IN ('member', 'project', 'organization')),
  usageLimit INTEGER,
  usage INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  periodUsageLimit INTEGER,
  periodUsageDurationValue INTEGER,
  periodUsageDurationUnit TEXT CHECK (periodUsageDurationUnit IN ('hour', 'day', 'week', 'month')),
  currentPeriodUsage INTEGER NOT NULL DEFAULT 0,
  currentPeriodReserved INTEGER NOT NULL DEFAULT 0,
  currentPeriodStartedAt INTEGER,
  periodUsageAlignment TEXT CHECK (periodUsageAlignment = 'calendar'),
  CHECK ((periodUsageLimit IS NULL) = (periodUsageDurationValue IS NULL) AND (periodUsageDurationValue IS NULL) = (periodUsageDurationUnit IS NULL)),
  CHECK (usageLimit IS NOT NULL OR periodUsageLimit IS NOT NULL)
) STRICT, WITHOUT ROWID;
`;

/** Rules by the subject that they bind, and long texts in parts (text-parts.ts). */
const rules = `
CREATE TABLE subject_rules (
  subjectId TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  scope TEXT NOT NULL CHECK (scope IN ('organization', 'group', 'member', 'key')),
  compiledJson TEXT NOT NULL DEFAULT '{"enforce":{}}',
  revision INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE compiled_parts (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE rules (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  subjectId TEXT NOT NULL REFERENCES subject_rules (subjectId),
  scope TEXT NOT NULL CHECK (scope IN ('organization', 'group', 'member', 'key')),
  ruleType TEXT NOT NULL,
  ruleValueJson TEXT NOT NULL,
  mode TEXT NOT NULL DEFAULT 'enforce' CHECK (mode IN ('enforce', 'report')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'inactive')),
  description TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  reportsSince INTEGER,
  reportRevision INTEGER,
  wouldDeny INTEGER NOT NULL DEFAULT 0,
  wouldAllow INTEGER NOT NULL DEFAULT 0,
  lastSeenAt INTEGER,
  managedBy TEXT,
  managedName TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX rules_by_subject ON rules (organizationId, subjectId, id);
CREATE INDEX reporting_rules ON rules (organizationId) WHERE reportsSince IS NOT NULL;
CREATE UNIQUE INDEX rules_managed ON rules (organizationId, subjectId, managedBy, managedName) WHERE managedBy IS NOT NULL;

CREATE TABLE rule_parts (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE report_mark (counted INTEGER NOT NULL) STRICT;
INSERT INTO report_mark VALUES (0);
`;

/** Providers and models of an organization, and the names and tags that it gives models. */
const providers = `
CREATE TABLE custom_providers (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  name TEXT NOT NULL,
  wire TEXT NOT NULL CHECK (wire IN ('openai', 'anthropic', 'google')),
  baseUrl TEXT NOT NULL,
  keyless INTEGER NOT NULL CHECK (keyless IN (0, 1)),
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER,
  fieldsJson TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;
CREATE INDEX custom_providers_by_organization ON custom_providers (organizationId, id);
CREATE UNIQUE INDEX custom_providers_by_name ON custom_providers (organizationId, name) WHERE deletedAt IS NULL;

CREATE TABLE custom_models (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  customProviderId TEXT NOT NULL REFERENCES custom_providers (id),
  model TEXT NOT NULL,
  displayName TEXT NOT NULL,
  pricesJson TEXT NOT NULL,
  contextLength INTEGER,
  maxOutput INTEGER,
  streaming INTEGER NOT NULL CHECK (streaming IN (0, 1)),
  vision INTEGER NOT NULL CHECK (vision IN (0, 1)),
  tools INTEGER NOT NULL CHECK (tools IN (0, 1)),
  parallelToolCalls INTEGER NOT NULL CHECK (parallelToolCalls IN (0, 1)),
  reasoning INTEGER NOT NULL CHECK (reasoning IN (0, 1)),
  jsonOutput INTEGER NOT NULL CHECK (jsonOutput IN (0, 1)),
  structuredOutputs INTEGER NOT NULL CHECK (structuredOutputs IN (0, 1)),
  inputModalitiesJson TEXT NOT NULL,
  outputModalitiesJson TEXT NOT NULL,
  supportedParametersJson TEXT,
  status TEXT NOT NULL CHECK (status IN ('active', 'inactive')),
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER
) STRICT;
CREATE INDEX custom_models_by_organization ON custom_models (organizationId, id);
CREATE UNIQUE INDEX custom_models_by_model ON custom_models (customProviderId, model) WHERE deletedAt IS NULL;

CREATE TABLE provider_keys (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  projectId TEXT REFERENCES projects (id),
  provider TEXT NOT NULL,
  label TEXT NOT NULL,
  ciphertext TEXT NOT NULL,
  encryptionKeyId TEXT NOT NULL,
  mask TEXT NOT NULL,
  baseUrl TEXT,
  position INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'inactive')),
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  deletedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX provider_keys_by_organization ON provider_keys (organizationId, id);

CREATE TABLE tag_sets (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  target TEXT NOT NULL,
  tagsJson TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL,
  UNIQUE (organizationId, target)
) STRICT;

CREATE TABLE aliases (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  projectId TEXT REFERENCES projects (id),
  name TEXT NOT NULL,
  modelsJson TEXT NOT NULL,
  weightsJson TEXT,
  createdAt INTEGER NOT NULL,
  updatedAt INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX aliases_name ON aliases (organizationId, name, ifnull(projectId, ''));
`;

/** Every change by a person or a command, in a chain of HMACs. Triggers keep the table append-only. */
const audit = `
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  organizationId TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  actorKind TEXT NOT NULL CHECK (actorKind IN ('person', 'master_key', 'cli', 'job')),
  actorId TEXT,
  memberId TEXT,
  action TEXT NOT NULL,
  targetType TEXT NOT NULL,
  targetId TEXT NOT NULL,
  beforeJson TEXT,
  afterJson TEXT,
  hmac TEXT NOT NULL
) STRICT;
CREATE INDEX audit_by_time ON audit (organizationId, createdAt);
CREATE INDEX audit_by_action ON audit (organizationId, action, createdAt);
CREATE INDEX audit_by_target ON audit (organizationId, targetId, createdAt);
CREATE INDEX audit_by_target_action ON audit (organizationId, targetId, action, createdAt);
CREATE TRIGGER audit_is_never_updated BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_never_deleted BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_only_appended_to BEFORE INSERT ON audit
WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM audit) OR EXISTS (SELECT 1 FROM audit WHERE id = NEW.id)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
`;

/** Sign-in of members with a browser. Sessions and links record no pepper: dropping a pepper ends them, which costs one sign-in. */
const signIn = `
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  memberId TEXT NOT NULL REFERENCES members (id),
  secretHash TEXT NOT NULL UNIQUE,
  method TEXT NOT NULL CHECK (method IN ('password', 'passkey', 'link', 'invitation')),
  createdAt INTEGER NOT NULL,
  lastUsedAt INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_member ON sessions (organizationId, memberId);
CREATE INDEX sessions_by_expiry ON sessions (expiresAt);

CREATE TABLE sign_in_links (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  memberId TEXT NOT NULL REFERENCES members (id),
  secretHash TEXT NOT NULL UNIQUE,
  createdAt INTEGER NOT NULL,
  expiresAt INTEGER NOT NULL,
  usedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_member ON sign_in_links (organizationId, memberId);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expiresAt);

CREATE TABLE passkeys (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  memberId TEXT NOT NULL REFERENCES members (id),
  rpId TEXT NOT NULL,
  credentialId TEXT NOT NULL UNIQUE,
  publicKey TEXT NOT NULL,
  counter INTEGER NOT NULL,
  transportsJson TEXT NOT NULL,
  label TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  lastUsedAt INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_by_member ON passkeys (organizationId, memberId);

CREATE TABLE sign_in_failures (
  emailHash TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  windowStartedAt INTEGER NOT NULL,
  lockedUntil INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (windowStartedAt);
`;

/** The authorization server's items, and the key that each grant stands for. */
const oauth = `
CREATE TABLE oauth_items (
  model TEXT NOT NULL,
  id TEXT NOT NULL,
  payloadJson TEXT NOT NULL,
  grantId TEXT,
  uid TEXT,
  createdAt INTEGER NOT NULL,
  consumedAt INTEGER,
  expiresAt INTEGER,
  registrant TEXT,
  PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_items_by_grant ON oauth_items (grantId) WHERE grantId IS NOT NULL;
CREATE INDEX oauth_items_by_uid ON oauth_items (uid) WHERE uid IS NOT NULL;
CREATE INDEX oauth_items_by_expiry ON oauth_items (expiresAt) WHERE expiresAt IS NOT NULL;
CREATE INDEX oauth_items_waiting ON oauth_items (registrant, createdAt) WHERE model = 'Client' AND expiresAt IS NOT NULL;

CREATE TABLE oauth_grants (
  id TEXT PRIMARY KEY,
  organizationId TEXT NOT NULL REFERENCES organizations (id),
  memberId TEXT NOT NULL REFERENCES members (id),
  keyId TEXT NOT NULL REFERENCES keys (id),
  clientId TEXT NOT NULL,
  clientName TEXT NOT NULL,
  createdAt INTEGER NOT NULL,
  endedAt INTEGER,
  isRegisteredByKey INTEGER NOT NULL DEFAULT 0,
  endsAt INTEGER
) STRICT;
CREATE INDEX oauth_grants_by_member ON oauth_grants (organizationId, memberId) WHERE endedAt IS NULL;
CREATE INDEX oauth_grants_by_client ON oauth_grants (clientId) WHERE endedAt IS NULL;
CREATE INDEX oauth_grants_by_key ON oauth_grants (keyId);
CREATE INDEX oauth_grants_by_end ON oauth_grants (endsAt) WHERE endsAt IS NOT NULL AND endedAt IS NULL;
`;

/** Columns of keys and budgets that people change; calls book in the others. */
const KEY_COLUMNS = `id, organizationId, projectId, createdBy, description, kind, secretHash, pepperId, mask, status, disabledAt, deletedAt,
  expiresAt, usageLimit, periodUsageLimit, periodUsageDurationValue, periodUsageDurationUnit, periodUsageAlignment, createdAt,
  updatedAt, previousSecretHash, previousPepperId, previousSecretEndsAt, tagsJson, limitedBySelf, sharesLimitsOf, requestsPerMinute,
  tokensPerMinute`;
const BUDGET_COLUMNS = `subjectId, organizationId, scope, usageLimit, periodUsageLimit, periodUsageDurationValue,
  periodUsageDurationUnit, periodUsageAlignment`;

/** Tables that are remembered between calls, and the updates of them that count as a change. */
const REMEMBERED: Readonly<Record<string, string>> = {
  organizations: 'UPDATE',
  projects: 'UPDATE',
  members: 'UPDATE',
  keys: `UPDATE OF ${KEY_COLUMNS}`,
  budgets: `UPDATE OF ${BUDGET_COLUMNS}`,
  groups: 'UPDATE',
  group_holders: 'UPDATE',
  custom_providers: 'UPDATE',
  custom_models: 'UPDATE',
  provider_keys: 'UPDATE',
  tag_sets: 'UPDATE',
  aliases: 'UPDATE',
};

const triggers = Object.entries(REMEMBERED).flatMap(([table, update]) =>
  Object.entries({ inserted: 'INSERT', updated: update, deleted: 'DELETE' }).map(
    ([name, event]) => `
CREATE TRIGGER ${table}_${name} AFTER ${event} ON ${table}
BEGIN UPDATE changes SET number = number + 1; END;`,
  ),
);

/**
 * A number that grows with every change of what is remembered between calls (database.ts). A connection that books no calls learns
 * from it whether what it remembers is still true.
 */
const changes = `
CREATE TABLE changes (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER NOT NULL) STRICT;
INSERT INTO changes VALUES (1, 0);
${triggers.join('\n')}
`;

export const initial = [organizations, keys, rules, providers, audit, signIn, oauth, calls, changes].join('');
