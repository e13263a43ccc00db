/** The secret that a key had before it was rolled with an overlap, and until when it is accepted too. */
export const rolledSecrets = `
ALTER TABLE keys ADD COLUMN previous_secret_hash TEXT;
ALTER TABLE keys ADD COLUMN previous_pepper_id TEXT;
ALTER TABLE keys ADD COLUMN previous_ends_at INTEGER;
CREATE UNIQUE INDEX keys_by_previous_secret ON keys (previous_secret_hash) WHERE previous_secret_hash IS NOT NULL;
`;
