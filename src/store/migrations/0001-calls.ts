/**
 * A row of `ledger` is a call and its decision. Values that repeat from call to call have rows of their own: who asks for what, the
 * decision as it was judged, who served, and the rules that a decision saw. Such a row is found by its `digest`.
 */
const ledger = `
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

CREATE TABLE call_verdicts (
  id INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  document INTEGER NOT NULL,
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

CREATE TABLE data_documents (
  id INTEGER PRIMARY KEY,
  digest TEXT NOT NULL UNIQUE,
  usedOn INTEGER NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX data_documents_by_use ON data_documents (usedOn);

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
  tookMs INTEGER,
  timesJson TEXT,
  sharedPeriodStartedAt INTEGER
) STRICT;
CREATE INDEX open_windows ON ledger (number) WHERE state = 0
  AND coalesce(periodStartedAt, memberPeriodStartedAt, projectPeriodStartedAt, organizationPeriodStartedAt) IS NOT NULL;

CREATE TABLE ledger_mark (openFrom INTEGER NOT NULL) STRICT;
INSERT INTO ledger_mark VALUES (0);
`;

/**
 * Calls and decisions by name. The address is read only if it is asked for, because verdicts are long rows that reports of usage
 * need not read.
 */
const views = `
CREATE VIEW calls AS SELECT
  number, 'call_' || lower(hex(ledger.id)) AS id, organizationId, projectId, keyId, memberId,
  'dec_' || lower(hex(ledger.id)) AS decisionId,
  CASE state WHEN 0 THEN 'open' WHEN 1 THEN 'settled' WHEN 2 THEN 'denied' WHEN 3 THEN 'recovered' ELSE 'released' END AS state,
  action, 'req_' || lower(hex(requestId)) AS requestId, clientRequestId,
  (SELECT clientAddress FROM call_verdicts WHERE call_verdicts.id = verdict) AS clientAddress, tool, requestedModel, stream, createdAt,
  reservation, periodStartedAt, memberPeriodStartedAt, projectPeriodStartedAt, organizationPeriodStartedAt, settledAt, cost,
  priceUnknown, costDetailsJson, promptTokens, completionTokens, reasoningTokens, cachedTokens, cacheWriteTokens, usageEstimated,
  cached, providerId, modelId, providerKeyId,
  replace(attemptsJson, '"logId":""', '"logId":"' || 'call_' || lower(hex(ledger.id)) || '"') AS attemptsJson, statusCode, errorCode
FROM ledger CROSS JOIN call_origins ON call_origins.id = origin
LEFT JOIN call_targets ON call_targets.id = target;

CREATE VIEW decisions AS SELECT
  number, 'dec_' || lower(hex(ledger.id)) AS id, organizationId, keyId, 'call_' || lower(hex(ledger.id)) AS callId,
  createdAt, action, requestedModel, outcome, reasonJson, violationsJson, shadowJson, bundleDigest, data_documents.digest AS dataDigest,
  ruleRevision, inputJson
FROM ledger CROSS JOIN call_origins ON call_origins.id = origin
CROSS JOIN call_verdicts ON call_verdicts.id = verdict
LEFT JOIN data_documents ON data_documents.id = document;
`;

/**
 * Written after a call, so that calls pay nothing for it: the index of the search (call-index.ts), sums of calls that retention has
 * deleted, and requests that ended with an error before they were calls.
 */
const afterCalls = `
CREATE TABLE call_index (
  last INTEGER NOT NULL,
  name TEXT NOT NULL,
  cells BLOB NOT NULL,
  PRIMARY KEY (last, name)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE refused_requests (
  id TEXT PRIMARY KEY,
  clientRequestId TEXT,
  organizationId TEXT,
  projectId TEXT,
  keyId TEXT,
  memberId TEXT,
  statusCode INTEGER NOT NULL,
  errorCode TEXT,
  message TEXT,
  detail TEXT,
  endpoint TEXT NOT NULL,
  requestedModel TEXT,
  clientAddress TEXT,
  userAgent TEXT,
  unrecorded INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX refused_requests_by_organization ON refused_requests (organizationId, id);
`;

export const calls = [ledger, views, afterCalls].join('');
