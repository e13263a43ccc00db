/**
 * Spend limits that all keys of a member, a project or an organization share, with the same columns as a key's own. A row is
 * there only where there is a limit. A call notes the windows of all budgets to which its cost belongs.
 */
export const budgets = `
CREATE TABLE budgets (
  subject_id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  scope TEXT NOT NULL CHECK (scope IN ('member', 'project', 'organization')),
  usage_limit_pico INTEGER,
  usage_pico INTEGER NOT NULL,
  reserved_pico INTEGER NOT NULL,
  period_limit_pico INTEGER,
  period_value INTEGER,
  period_unit TEXT CHECK (period_unit IN ('hour', 'day', 'week', 'month')),
  period_usage_pico INTEGER NOT NULL DEFAULT 0,
  period_reserved_pico INTEGER NOT NULL DEFAULT 0,
  period_started_at INTEGER,
  CHECK ((period_limit_pico IS NULL) = (period_value IS NULL) AND (period_value IS NULL) = (period_unit IS NULL)),
  CHECK (usage_limit_pico IS NOT NULL OR period_limit_pico IS NOT NULL)
) STRICT, WITHOUT ROWID;

ALTER TABLE calls ADD COLUMN member_period_started_at INTEGER;
ALTER TABLE calls ADD COLUMN project_period_started_at INTEGER;
ALTER TABLE calls ADD COLUMN organization_period_started_at INTEGER;
`;
