/** Whether a price that the call needed was not known, so that its cost leaves something out. */
export const unknownPrices = `ALTER TABLE calls ADD COLUMN price_unknown INTEGER NOT NULL DEFAULT 0 CHECK (price_unknown IN (0, 1))`;
