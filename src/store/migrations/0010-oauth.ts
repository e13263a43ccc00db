/** What the authorization server keeps, and which key each grant stands for. */
export const oauth = `
CREATE TABLE oauth_items (
  model TEXT NOT NULL,
  id TEXT NOT NULL,
  payload_json TEXT NOT NULL,
  grant_id TEXT,
  uid TEXT,
  created_at INTEGER NOT NULL,
  consumed_at INTEGER,
  expires_at INTEGER,
  PRIMARY KEY (model, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_items_by_grant ON oauth_items (grant_id) WHERE grant_id IS NOT NULL;
CREATE INDEX oauth_items_by_uid ON oauth_items (uid) WHERE uid IS NOT NULL;
CREATE INDEX oauth_items_by_expiry ON oauth_items (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE oauth_grants (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  key_id TEXT NOT NULL REFERENCES keys (id),
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;
CREATE INDEX oauth_grants_by_member ON oauth_grants (organization_id, member_id) WHERE ended_at IS NULL;
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_id) WHERE ended_at IS NULL;
CREATE INDEX oauth_grants_by_key ON oauth_grants (key_id);
`;
