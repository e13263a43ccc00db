/**
 * Rights that end with what they came from: a grant that a key's secret made ends with that secret, at a time that is known when the key
 * is rolled with an overlap. Of grants that are there already nobody knows which of the service applications a secret made: all of them
 * count as such. And who registered a client that nobody has allowed yet: each may have so many.
 */
export const derivedRights = `
ALTER TABLE oauth_grants ADD COLUMN isRegisteredByKey INTEGER NOT NULL DEFAULT 0;
ALTER TABLE oauth_grants ADD COLUMN endsAt INTEGER;
UPDATE oauth_grants SET isRegisteredByKey = 1 WHERE id = clientId;
CREATE INDEX oauth_grants_by_end ON oauth_grants (endsAt) WHERE endsAt IS NOT NULL AND endedAt IS NULL;
ALTER TABLE oauth_items ADD COLUMN registrant TEXT;
CREATE INDEX oauth_items_waiting ON oauth_items (registrant, createdAt) WHERE model = 'Client' AND expiresAt IS NOT NULL;
`;
