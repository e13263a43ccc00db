/**
 * Sign-in of members in a browser. Sessions and links are found by the hash of their secret; that a pepper is dropped ends them, which
 * costs a sign-in, so they do not say which one they need. Failures are counted by a hash of the e-mail, whether a member has it or not.
 */
export const signIn = `
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  secret_hash TEXT NOT NULL UNIQUE,
  method TEXT NOT NULL CHECK (method IN ('password', 'passkey', 'link', 'invitation')),
  created_at INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_member ON sessions (organization_id, member_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE sign_in_links (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  secret_hash TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_member ON sign_in_links (organization_id, member_id);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

CREATE TABLE passkeys (
  id TEXT PRIMARY KEY,
  organization_id TEXT NOT NULL REFERENCES organizations (id),
  member_id TEXT NOT NULL REFERENCES members (id),
  rp_id TEXT NOT NULL,
  credential_id TEXT NOT NULL UNIQUE,
  public_key TEXT NOT NULL,
  counter INTEGER NOT NULL,
  transports_json TEXT NOT NULL,
  label TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX passkeys_by_member ON passkeys (organization_id, member_id);

CREATE TABLE sign_in_failures (
  email_hash TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  window_started_at INTEGER NOT NULL,
  locked_until INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (window_started_at);

CREATE INDEX members_signing_in ON members (email, id) WHERE removed_at IS NULL AND password_hash IS NOT NULL;
`;
