/**
 * What calls are searched by, in blocks of rows of the ledger (call-index.ts): `last` is the number of the block's last row, `name` says
 * what `cells` has of each row. It is written behind, so that calls pay nothing for it.
 */
export const callIndex = `
CREATE TABLE call_index (
  last INTEGER NOT NULL,
  name TEXT NOT NULL,
  cells BLOB NOT NULL,
  PRIMARY KEY (last, name)
) STRICT, WITHOUT ROWID;
`;
