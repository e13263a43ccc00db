/**
 * What usage reports need of calls that retention has deleted: sums by the hour (epoch ms of its begin) and everything that rows
 * of a report are grouped by. No model and no provider are empty texts, so that a row is found by its key. Tokens are REAL as the
 * reports sum them, the cost is in two halves as there.
 */
export const keptUsage = `
CREATE TABLE kept_usage (
  hour INTEGER NOT NULL,
  organization_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  key_id TEXT NOT NULL,
  member_id TEXT NOT NULL,
  model_id TEXT NOT NULL,
  provider_id TEXT NOT NULL,
  calls INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  denied INTEGER NOT NULL,
  limit_refusals INTEGER NOT NULL,
  cache_hits INTEGER NOT NULL,
  estimated_calls INTEGER NOT NULL,
  unknown_price_calls INTEGER NOT NULL,
  prompt_tokens REAL NOT NULL,
  completion_tokens REAL NOT NULL,
  reasoning_tokens REAL NOT NULL,
  cached_tokens REAL NOT NULL,
  cache_write_tokens REAL NOT NULL,
  high_pico INTEGER NOT NULL,
  low_pico INTEGER NOT NULL,
  PRIMARY KEY (organization_id, hour, project_id, key_id, member_id, model_id, provider_id)
) STRICT, WITHOUT ROWID;
`;
