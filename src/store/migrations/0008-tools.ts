/** The MCP tool by which a call came; null for other doors. */
export const tools = `ALTER TABLE calls ADD COLUMN tool TEXT`;
