/**
 * Blocks of the call log that are closed and sealed (call-seals.ts), and the digests of the changed rows in an entry of the audit log.
 * `number` of a block counts from 1; `last` is the number of a call.
 */
export const seals = `
CREATE TABLE call_blocks (
  number INTEGER PRIMARY KEY,
  last INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  digest TEXT NOT NULL,
  openJson TEXT NOT NULL,
  marks BLOB,
  forgotten INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1))
) STRICT;
CREATE INDEX call_blocks_by_last ON call_blocks (last);

ALTER TABLE audit ADD COLUMN stateJson TEXT;
CREATE INDEX audit_of_state ON audit (seq) WHERE stateJson IS NOT NULL;
`;
