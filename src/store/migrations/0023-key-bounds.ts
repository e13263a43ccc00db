/**
 * Windows that follow the calendar. What a developer's new keys may be given (`newKeyLimitsJson`, null: as much as their most limited
 * key), whether a developer chose a key's limits, and whose limits a key that a developer made shares; a call notes the window of
 * those, too.
 */
export const keyBounds = `
ALTER TABLE keys ADD COLUMN periodUsageAlignment TEXT CHECK (periodUsageAlignment = 'calendar');
ALTER TABLE budgets ADD COLUMN periodUsageAlignment TEXT CHECK (periodUsageAlignment = 'calendar');
ALTER TABLE organizations ADD COLUMN newKeyLimitsJson TEXT;
ALTER TABLE keys ADD COLUMN limitedBySelf INTEGER NOT NULL DEFAULT 0 CHECK (limitedBySelf IN (0, 1));
ALTER TABLE keys ADD COLUMN sharesLimitsOf TEXT REFERENCES keys (id);
ALTER TABLE ledger ADD COLUMN sharedPeriodStartedAt INTEGER;
CREATE INDEX keys_by_shared_limits ON keys (sharesLimitsOf) WHERE sharesLimitsOf IS NOT NULL;
CREATE TRIGGER keys_aligned AFTER UPDATE OF periodUsageAlignment, limitedBySelf, sharesLimitsOf ON keys
BEGIN UPDATE changes SET number = number + 1; END;
CREATE TRIGGER budgets_aligned AFTER UPDATE OF periodUsageAlignment ON budgets
BEGIN UPDATE changes SET number = number + 1; END;
`;
