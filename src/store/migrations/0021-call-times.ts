/** How long calls took: in all, and where the time went (Settlement in ledger.ts). */
export const callTimes = `
ALTER TABLE ledger ADD COLUMN tookMs INTEGER;
ALTER TABLE ledger ADD COLUMN timesJson TEXT;
`;
