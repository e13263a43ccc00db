import type { UsageReport, UsageRow } from '../../generated/types.ts';

const COLUMNS: readonly (keyof UsageRow)[] = [
  'start',
  'memberId',
  'memberEmail',
  'model',
  'provider',
  'projectId',
  'projectName',
  'keyId',
  'keyDescription',
  'calls',
  'errors',
  'denied',
  'limitRefusals',
  'cacheHits',
  'estimatedCalls',
  'unknownPriceCalls',
  'promptTokens',
  'completionTokens',
  'reasoningTokens',
  'cachedTokens',
  'cacheWriteTokens',
  'cost',
];

/** What a spreadsheet would take for a formula is made text by an apostrophe (src/admin/README.md, "usage"). */
const asText = (cell: string): string => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

const line = (cells: readonly string[]): string => `${cells.map((cell) => quoted(asText(cell))).join(',')}\r\n`;

/** Null is an empty cell, but for the cost, which must not be taken for nothing. */
const cellOf = (row: UsageRow, column: keyof UsageRow): string =>
  String(row[column] ?? (column === 'cost' ? 'unknown' : ''));

/** The rows as RFC 4180 has them, with a header. */
export const usageCsv = ({ usage: { rows } }: UsageReport): string =>
  line(COLUMNS) + rows.map((row) => line(COLUMNS.map((column) => cellOf(row, column)))).join('');
