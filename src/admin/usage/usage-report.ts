import { formatUsd } from '../../domain/limits.ts';
import { DAY, formatTime, HOUR } from '../../domain/time.ts';
import type { Usage, UsageReport, UsageRow } from '../../generated/types.ts';
import type { Database } from '../../store/db/database.ts';
import { unknownCursor } from '../../store/db/records.ts';
import { COUNTS, prepareUsageSums, type SumUsage, type UsageSums } from '../../store/ledger/usage-sums.ts';
import { findNames } from '../../store/tenants/tenants.ts';
import type { ReportedUsage, UsageRequest } from './usage-query.ts';

/** End of a page: the start of its last row's hour or day, and the row's dimensions. */
type PageStart = readonly [start: number, ...of: (string | null)[]];

interface PlacedSums {
  readonly start: number;
  readonly sums: UsageSums;
}

/**
 * One page of a usage report, as `GET /v1/master/usage` answers it. Reads all calls of the time that the page covers: not for
 * the serving thread. @throws ApiError 400 for a cursor that is not ours
 */
export function usageReport(db: Database, request: UsageRequest): UsageReport {
  const { from, to, granularity, groupBy, limit, cursor } = request;
  const after = cursor === undefined ? undefined : decodePageStart(cursor, request);
  const page: PlacedSums[] = [];
  let last: PlacedSums | undefined;
  for (const placed of placedSums(prepareUsageSums(db, request, groupBy), request, after)) {
    if (page.length === limit) {
      last = page.at(-1);
      break;
    }
    page.push(placed);
  }
  const usage: Usage = {
    from: formatTime(from),
    to: formatTime(to),
    granularity,
    groupBy: [...groupBy],
    rows: viewRows(db, request.organizationId, page),
  };
  return { usage, nextCursor: last === undefined ? null : encodePageStart(last) };
}

/** Hour by hour or day by day: however much there is, no statement runs for long, and a page reads no more than it needs. */
function* placedSums(sum: SumUsage, request: UsageRequest, after: PageStart | undefined): Generator<PlacedSums> {
  for (const { start, from, to } of periods(request)) {
    if (after !== undefined && start < after[0]) continue;
    for (const sums of sumPeriod(sum, from, to)) {
      if (after === undefined || start > after[0] || compare(pageStartOf({ start, sums }), after) > 0)
        yield { start, sums };
    }
  }
}

/** The hours, days or the one period of the report; the first and the last cut to its range. */
function* periods({ from, to, granularity }: UsageRequest): Generator<{ start: number; from: number; to: number }> {
  if (granularity === 'total') {
    yield { start: from, from, to };
    return;
  }
  const length = granularity === 'hour' ? HOUR : DAY;
  for (let start = from - (from % length); start < to; start += length) {
    yield { start, from: Math.max(start, from), to: Math.min(start + length, to) };
  }
}

/** Sums of a period, a day at a time at most, in the order of their dimensions. */
function sumPeriod(sum: SumUsage, from: number, to: number): UsageSums[] {
  const merged = new Map<string, UsageSums>();
  for (let start = from; start < to; start += DAY) {
    for (const sums of sum(start, Math.min(start + DAY, to))) {
      const name = JSON.stringify(Object.values(sums.of));
      const known = merged.get(name);
      merged.set(name, known === undefined ? sums : added(known, sums));
    }
  }
  return [...merged.values()].sort((a, b) =>
    compare(pageStartOf({ start: 0, sums: a }), pageStartOf({ start: 0, sums: b })),
  );
}

function added(a: UsageSums, b: UsageSums): UsageSums {
  const sum = { ...a, cost: a.cost + b.cost };
  for (const count of COUNTS) sum[count] += b[count];
  return sum;
}

/** The rows with what people call the members, projects and keys in them. */
function viewRows(db: Database, organizationId: string, page: readonly PlacedSums[]): UsageRow[] {
  const ids = page.flatMap(({ sums: { of } }) => [of.member, of.project, of.key]);
  const names = findNames(
    db,
    organizationId,
    ids.filter((id) => id !== null),
  );
  const nameOf = (id: string | null): string | null => (id === null ? null : (names.get(id) ?? null));
  return page.map(({ start, sums: { of, cost, ...counts } }) => ({
    start: formatTime(start),
    memberId: of.member,
    memberEmail: nameOf(of.member),
    model: of.model,
    provider: of.provider,
    projectId: of.project,
    projectName: nameOf(of.project),
    keyId: of.key,
    keyDescription: nameOf(of.key),
    ...counts,
    cost: cost === 0n && counts.unknownPriceCalls > 0 ? null : formatUsd(cost),
  }));
}

const pageStartOf = ({ start, sums: { of } }: PlacedSums): PageStart => [
  start,
  of.member,
  of.model,
  of.provider,
  of.project,
  of.key,
];

/** By time, then dimension by dimension; null before any text. */
function compare(a: PageStart, b: PageStart): number {
  const [aStart, ...aOf] = a;
  const [bStart, ...bOf] = b;
  if (aStart !== bStart) return aStart - bStart;
  for (const [index, one] of aOf.entries()) {
    const other = bOf[index] ?? null;
    if (one === other) continue;
    if (one === null || other === null) return one === null ? -1 : 1;
    return one < other ? -1 : 1;
  }
  return 0;
}

const encodePageStart = (last: PlacedSums): string =>
  Buffer.from(JSON.stringify(pageStartOf(last))).toString('base64url');

function decodePageStart(cursor: string, { from, to }: UsageRequest): PageStart {
  let place: unknown;
  try {
    place = JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    throw unknownCursor();
  }
  if (!Array.isArray(place) || place.length !== 6) throw unknownCursor();
  const [start, ...of]: unknown[] = place;
  if (typeof start !== 'number' || !Number.isSafeInteger(start) || start < from - DAY || start >= to) {
    throw unknownCursor();
  }
  return [start, ...of.map(nameOrNull)];
}

function nameOrNull(value: unknown): string | null {
  if (value === null || typeof value === 'string') return value;
  throw unknownCursor();
}

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
  ...COUNTS,
  'cost',
];

/** Puts an apostrophe before a cell that a spreadsheet would take for a formula (src/admin/README.md, "usage"). */
const asText = (cell: string): string => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);

const quoted = (cell: string): string => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);

const line = (cells: readonly string[]): string => `${cells.map((cell) => quoted(asText(cell))).join(',')}\r\n`;

/** Null is an empty cell, but for the cost, which must not be taken for nothing. */
const cellOf = (row: UsageRow, column: keyof UsageRow): string =>
  String(row[column] ?? (column === 'cost' ? 'unknown' : ''));

/** The rows as RFC 4180 has them, with a header. */
export const usageCsv = ({ usage: { rows } }: UsageReport): string =>
  line(COLUMNS) + rows.map((row) => line(COLUMNS.map((column) => cellOf(row, column)))).join('');

/** A page of the report in the format that was asked for. Not for the serving thread. @throws as `usageReport` */
export function readReportedUsage(db: Database, request: UsageRequest): ReportedUsage {
  const report = usageReport(db, request);
  const text = request.format === 'csv' ? usageCsv(report) : JSON.stringify(report);
  return { bytes: new TextEncoder().encode(text), nextCursor: report.nextCursor };
}
