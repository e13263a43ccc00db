/**
 * Which policy folder states a rule, and the rule's name there: both or neither. A name means one rule of an owner, so that a value
 * that changes in the folder changes that rule.
 */
export const managedRules = `
ALTER TABLE rules ADD COLUMN managedBy TEXT;
ALTER TABLE rules ADD COLUMN managedName TEXT;
CREATE UNIQUE INDEX rules_managed ON rules (organizationId, subjectId, managedBy, managedName) WHERE managedBy IS NOT NULL;
`;
