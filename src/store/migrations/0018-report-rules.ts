/**
 * What rules in mode `report` would have changed (report-counts.ts): since when a rule reports as it is, by the time and by the
 * organization's rule revision, and how many decisions since then name it in their shadow. Of rules that are there already nobody knows,
 * so all decisions on record count. `report_mark` holds the number of the last call that was counted.
 *
 * The index of calls is made once more, with addresses in an order in which ranges can be searched.
 */
export const reportRules = `
ALTER TABLE rules ADD COLUMN reportsSince INTEGER;
ALTER TABLE rules ADD COLUMN reportRevision INTEGER;
ALTER TABLE rules ADD COLUMN wouldDeny INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rules ADD COLUMN wouldAllow INTEGER NOT NULL DEFAULT 0;
ALTER TABLE rules ADD COLUMN lastSeenAt INTEGER;
UPDATE rules SET reportsSince = createdAt, reportRevision = 0 WHERE mode = 'report' AND status = 'active';

CREATE INDEX reporting_rules ON rules (organizationId) WHERE reportsSince IS NOT NULL;

CREATE TABLE report_mark (counted INTEGER NOT NULL) STRICT;
INSERT INTO report_mark VALUES (0);

DELETE FROM call_index;
`;
