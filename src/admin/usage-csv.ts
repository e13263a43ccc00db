import type { UsageReport, UsageRow } from '../generated/types.ts';

const COLUMNS: readonly (keyof UsageRow)[] = [
  'start',
  'memberId',
  'model',
  'provider',
  'projectId',
  'keyId',
  'calls',
  'errors',
  'denied',
  'cacheHits',
  'estimatedCalls',
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'cost',
];

/** What a spreadsheet would take for a formula is made text by an apostrophe (decisions.md, section 7, "usage"). */
const asText = (cell: string): string => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

const line = (cells: readonly string[]): string => `${cells.map((cell) => quoted(asText(cell))).join(',')}\r\n`;

/** The rows as RFC 4180 has them, with a header; null is an empty cell. */
export const usageCsv = ({ usage: { rows } }: UsageReport): string =>
  line(COLUMNS) + rows.map((row) => line(COLUMNS.map((column) => String(row[column] ?? '')))).join('');
