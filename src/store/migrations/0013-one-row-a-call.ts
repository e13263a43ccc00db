/**
 * One row a call, which its decision shares (ledger.ts). What repeats from call to call has rows of its own: who asks for what
 * (`call_origins`), the decision as it was judged (`call_verdicts`), who served and how (`call_targets`), the data document that was
 * seen. `digest` finds such a row, `usedOn` is the UTC day of the last call that refers to it, or a later one (interned.ts). Rows are
 * numbered in the order of their calls' ids, 2048 to a millisecond (call-number.ts). The views have what readers want to see; the
 * address is read where it is asked for, because verdicts are long rows that reports of usage need not look at.
 *
 * Read row by row, so that a million calls take no more memory than one. `digest(…)` is a function of migrate.ts; `'0x…' ->> '$'`
 * reads a hexadecimal number. A decision whose call is gone goes too: retention deletes both at the same age, the call first.
 */
const today = "unixepoch('now') / 86400";
const origin = 'organization_id, project_id, key_id, member_id, action, tool, requested_model, stream';
const verdict =
  'client_address, decisions.outcome, reason_json, violations_json, shadow_json, bundle_digest, rule_revision, input_json, data_digest';
const target = `provider_id, model_id, provider_key_id, replace(attempts_json, '"logId":"' || calls.id || '"', '"logId":""')`;
/** In the text of a view: the ids that callers see. */
const shown = (prefix: string, bytes: string): string => `'${prefix}_' || lower(hex(${bytes}))`;

export const oneRowACall = `
CREATE TABLE call_origins (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  organizationId TEXT NOT NULL,
  projectId TEXT NOT NULL,
  keyId TEXT NOT NULL,
  memberId TEXT NOT NULL,
  action TEXT NOT NULL,
  tool TEXT,
  requestedModel TEXT NOT NULL,
  stream INTEGER NOT NULL CHECK (stream IN (0, 1))
) STRICT;
CREATE INDEX call_origins_by_use ON call_origins (usedOn);
INSERT INTO call_origins (digest, usedOn, organizationId, projectId, keyId, memberId, action, tool, requestedModel, stream)
  SELECT digest(${origin}), ${today}, ${origin} FROM calls WHERE true ON CONFLICT DO NOTHING;

CREATE TABLE call_targets (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  providerId TEXT,
  modelId TEXT,
  providerKeyId TEXT,
  attemptsJson TEXT
) STRICT;
CREATE INDEX call_targets_by_use ON call_targets (usedOn);
INSERT INTO call_targets (digest, usedOn, providerId, modelId, providerKeyId, attemptsJson)
  SELECT digest(${target}), ${today}, ${target} FROM calls
  WHERE coalesce(provider_id, model_id, provider_key_id, attempts_json) IS NOT NULL ON CONFLICT DO NOTHING;

ALTER TABLE data_documents RENAME TO old_documents;
CREATE TABLE data_documents (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX data_documents_by_use ON data_documents (usedOn);
INSERT INTO data_documents (digest, usedOn, text) SELECT digest, ${today}, text FROM old_documents;
DROP TABLE old_documents;

CREATE TABLE call_verdicts (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  document INTEGER,
  clientAddress TEXT,
  outcome TEXT NOT NULL CHECK (outcome IN ('permit', 'deny')),
  bundleDigest TEXT NOT NULL,
  ruleRevision INTEGER NOT NULL,
  reasonJson TEXT,
  violationsJson TEXT NOT NULL,
  shadowJson TEXT,
  inputJson TEXT NOT NULL
) STRICT;
CREATE INDEX call_verdicts_by_use ON call_verdicts (usedOn);
INSERT INTO call_verdicts (digest, usedOn, document, clientAddress, outcome, reasonJson, violationsJson, shadowJson, bundleDigest, ruleRevision, inputJson)
  SELECT digest(${verdict}), ${today}, data_documents.id,
    client_address, decisions.outcome, reason_json, violations_json, shadow_json, bundle_digest, rule_revision, input_json
  FROM calls CROSS JOIN decisions ON decisions.id = calls.decision_id
  LEFT JOIN data_documents ON data_documents.digest = decisions.data_digest
  WHERE true ON CONFLICT DO NOTHING;

CREATE TABLE ledger (
  number INTEGER PRIMARY KEY,
  id BLOB NOT NULL,
  origin INTEGER NOT NULL,
  verdict INTEGER,
  target INTEGER,
  state INTEGER NOT NULL,
  createdAt INTEGER NOT NULL,
  requestId BLOB NOT NULL,
  clientRequestId TEXT,
  reservation INTEGER NOT NULL DEFAULT 0,
  periodStartedAt INTEGER,
  memberPeriodStartedAt INTEGER,
  projectPeriodStartedAt INTEGER,
  organizationPeriodStartedAt INTEGER,
  settledAt INTEGER,
  cost INTEGER NOT NULL DEFAULT 0,
  priceUnknown INTEGER NOT NULL DEFAULT 0,
  costDetailsJson TEXT,
  promptTokens INTEGER NOT NULL DEFAULT 0,
  completionTokens INTEGER NOT NULL DEFAULT 0,
  reasoningTokens INTEGER NOT NULL DEFAULT 0,
  cachedTokens INTEGER NOT NULL DEFAULT 0,
  cacheWriteTokens INTEGER NOT NULL DEFAULT 0,
  usageEstimated INTEGER NOT NULL DEFAULT 0,
  cached INTEGER NOT NULL DEFAULT 0,
  statusCode INTEGER,
  errorCode TEXT,
  decisionId BLOB
) STRICT;
INSERT INTO ledger
  WITH placed AS (
    SELECT rowid AS row, ('0x' || substr(id, 6, 12) ->> '$') * 2048 AS earliest, row_number() OVER (ORDER BY id) AS place FROM calls
  ), numbered AS (SELECT row, place + max(earliest - place) OVER (ORDER BY place) AS number FROM placed)
  SELECT number, unhex(substr(calls.id, 6)), call_origins.id, call_verdicts.id, call_targets.id,
    CASE state WHEN 'open' THEN 0 WHEN 'settled' THEN 1 WHEN 'denied' THEN 2 WHEN 'recovered' THEN 3 ELSE 4 END,
    calls.created_at, unhex(substr(request_id, 5)), client_request_id, reservation_pico, period_started_at, member_period_started_at,
    project_period_started_at, organization_period_started_at, settled_at, cost_pico, price_unknown, cost_details_json, prompt_tokens,
    completion_tokens, reasoning_tokens, cached_tokens, cache_write_tokens, usage_estimated, cached, status_code, error_code,
    unhex(substr(decision_id, 5))
  FROM numbered CROSS JOIN calls ON calls.rowid = row
  LEFT JOIN decisions ON decisions.id = decision_id
  LEFT JOIN call_origins ON call_origins.digest = digest(${origin.replaceAll(/\w+/g, 'calls.$&')})
  LEFT JOIN call_verdicts ON call_verdicts.digest = digest(${verdict})
  LEFT JOIN call_targets ON call_targets.digest = digest(${target});
DROP TABLE calls;
DROP TABLE decisions;
CREATE INDEX open_windows ON ledger (number) WHERE state = 0
  AND coalesce(periodStartedAt, memberPeriodStartedAt, projectPeriodStartedAt, organizationPeriodStartedAt) IS NOT NULL;

CREATE TABLE ledger_mark (openFrom INTEGER NOT NULL) STRICT;
INSERT INTO ledger_mark VALUES (0);

CREATE VIEW calls AS SELECT
  number, ${shown('call', 'ledger.id')} AS id, organizationId, projectId, keyId, memberId,
  ${shown('dec', 'coalesce(decisionId, ledger.id)')} AS decisionId,
  CASE state WHEN 0 THEN 'open' WHEN 1 THEN 'settled' WHEN 2 THEN 'denied' WHEN 3 THEN 'recovered' ELSE 'released' END AS state,
  action, ${shown('req', 'requestId')} AS requestId, clientRequestId,
  (SELECT clientAddress FROM call_verdicts WHERE call_verdicts.id = verdict) AS clientAddress, tool, requestedModel, stream, createdAt,
  reservation, periodStartedAt, memberPeriodStartedAt, projectPeriodStartedAt, organizationPeriodStartedAt, settledAt, cost,
  priceUnknown, costDetailsJson, promptTokens, completionTokens, reasoningTokens, cachedTokens, cacheWriteTokens, usageEstimated,
  cached, providerId, modelId, providerKeyId,
  replace(attemptsJson, '"logId":""', '"logId":"' || ${shown('call', 'ledger.id')} || '"') AS attemptsJson, statusCode, errorCode
FROM ledger CROSS JOIN call_origins ON call_origins.id = origin
LEFT JOIN call_targets ON call_targets.id = target;

CREATE VIEW decisions AS SELECT
  number, ${shown('dec', 'coalesce(decisionId, ledger.id)')} AS id, organizationId, keyId, ${shown('call', 'ledger.id')} AS callId,
  createdAt, action, requestedModel, outcome, reasonJson, violationsJson, shadowJson, bundleDigest, data_documents.digest AS dataDigest,
  ruleRevision, inputJson
FROM ledger CROSS JOIN call_origins ON call_origins.id = origin
CROSS JOIN call_verdicts ON call_verdicts.id = verdict
LEFT JOIN data_documents ON data_documents.id = document;

ALTER TABLE kept_usage RENAME TO old_usage;
CREATE TABLE kept_usage (
  hour INTEGER NOT NULL,
  organizationId TEXT NOT NULL,
  projectId TEXT NOT NULL,
  keyId TEXT NOT NULL,
  memberId TEXT NOT NULL,
  modelId TEXT NOT NULL,
  providerId TEXT NOT NULL,
  calls INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  denied INTEGER NOT NULL,
  limitRefusals INTEGER NOT NULL,
  cacheHits INTEGER NOT NULL,
  estimatedCalls INTEGER NOT NULL,
  unknownPriceCalls INTEGER NOT NULL,
  promptTokens REAL NOT NULL,
  completionTokens REAL NOT NULL,
  reasoningTokens REAL NOT NULL,
  cachedTokens REAL NOT NULL,
  cacheWriteTokens REAL NOT NULL,
  costHigh INTEGER NOT NULL,
  costLow INTEGER NOT NULL,
  PRIMARY KEY (organizationId, hour, projectId, keyId, memberId, modelId, providerId)
) STRICT, WITHOUT ROWID;
INSERT INTO kept_usage SELECT * FROM old_usage;
DROP TABLE old_usage;
`;
