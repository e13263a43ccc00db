/** Request fields that a custom provider takes beyond those of its wire format, as a JSON list of names. */
export const providerFields = `ALTER TABLE custom_providers ADD COLUMN fields_json TEXT NOT NULL DEFAULT '[]'`;
