import { type Command, Option } from 'commander';
import { readUsageRequest } from '../admin/usage/usage-query.ts';
import { usageCsv, usageReport } from '../admin/usage/usage-report.ts';
import type { UsageReport, UsageRow } from '../generated/types.ts';
import { keyId, projectId } from './record-references.ts';
import { type CommonOptions, listing, named, timeOf, wordList } from './terminal/options.ts';
import { type Column, type Format, free, print, printJson, printTable } from './terminal/output.ts';
import { UsageError } from './terminal/usage-faults.ts';
import { type Environment, inWorkspace, type Workspace } from './workspace.ts';

interface Options extends CommonOptions {
  readonly from?: string;
  readonly to?: string;
  readonly by?: string;
  readonly groupBy?: readonly Dimension[];
  readonly project?: string;
  readonly key?: string;
  readonly member?: string;
  readonly csv?: true;
}

type Dimension = UsageReport['usage']['groupBy'][number];

const GRANULARITIES = ['hour', 'day', 'total'] as const satisfies readonly UsageReport['usage']['granularity'][];
const DIMENSIONS = ['member', 'model', 'provider', 'project', 'key'] as const satisfies readonly Dimension[];

const HELP = `
Times are UTC: a date, or an RFC 3339 time. As --to a date is included, a time is not.

Examples:
  $ portcullis usage --group-by model,key
  $ portcullis usage --from month --by total --group-by member
  $ portcullis usage --from 2026-01-01 --to 2026-01-31 --by total --group-by project --csv > january.csv`;

/** `portcullis usage`. */
export function usageCommand(program: Command, env: Environment): void {
  listing(program.command('usage'))
    .description('Print what calls were made and what they cost.')
    .option(
      '--from <time>',
      'begin: a time, a day, or today, week, month; default: seven days, the last one that of --to',
    )
    .option('--to <time>', 'end; default: now')
    .addOption(
      new Option('--by <granularity>', 'by hour for 31 days at most, else for 366')
        .choices(GRANULARITIES)
        .default('day'),
    )
    .addOption(
      new Option('--group-by <dimensions>', `a comma list of ${DIMENSIONS.join(', ')}`).argParser(wordList(DIMENSIONS)),
    )
    .option('--project <project>', 'calls of one project: id or name')
    .option('--key <key>', 'calls with one key: id, masked token or description')
    .option('--member <member>', "calls with one member's keys: membership id or e-mail")
    .option('--csv', 'print CSV')
    .addHelpText('after', HELP)
    .action(async (options: Options) => {
      if (options.json && options.csv) throw new UsageError('Choose --json or --csv.');
      const report = await inWorkspace(env, 'read', options.org, (workspace) => wholeReport(workspace, options));
      if (options.json) printJson(report);
      else if (options.csv) process.stdout.write(usageCsv(report));
      else show(report, { wide: options.wide });
    });
}

/** All pages as one: here nobody else waits. */
function wholeReport(workspace: Workspace, { from, to, by, groupBy, ...of }: Options): UsageReport {
  const { db, actor, now } = workspace;
  const query = named({
    from: timeOf(from, now),
    to,
    granularity: by,
    groupBy: groupBy?.join(','),
    projectId: of.project === undefined ? undefined : projectId(workspace, of.project),
    keyId: of.key === undefined ? undefined : keyId(workspace, of.key),
    memberId: of.member,
    limit: '10000',
  });
  const request = readUsageRequest(db, actor, query, now);
  const first = usageReport(db, request);
  const rows = [...first.usage.rows];
  for (let cursor = first.nextCursor; cursor !== null; ) {
    const { usage, nextCursor } = usageReport(db, { ...request, cursor });
    rows.push(...usage.rows);
    cursor = nextCursor;
  }
  return { usage: { ...first.usage, rows }, nextCursor: null };
}

/** `1.5 + unknown` where some of the calls needed a price that is not known. */
function costCell({ cost, unknownPriceCalls }: UsageRow): string {
  if (cost === null) return 'unknown';
  return unknownPriceCalls === 0 ? cost : `${cost} + unknown`;
}

const DIMENSION_COLUMNS = {
  member: { title: 'MEMBER', of: ({ memberEmail, memberId }: UsageRow) => memberEmail ?? memberId },
  model: { title: 'MODEL', of: ({ model }: UsageRow) => model },
  provider: { title: 'PROVIDER', of: ({ provider }: UsageRow) => provider },
  project: { title: 'PROJECT', of: (row: UsageRow) => row.projectName ?? row.projectId },
  key: { title: 'KEY', of: (row: UsageRow) => row.keyDescription || (row.keyId === null ? null : 'unnamed') },
};

const NUMBER_COLUMNS: readonly (readonly [title: Column, of: (row: UsageRow) => string | number])[] = [
  ['CALLS', ({ calls }) => calls],
  ['ERRORS', ({ errors }) => errors],
  ['DENIED', ({ denied }) => denied],
  ['TOKENS IN', ({ promptTokens }) => promptTokens],
  ['TOKENS OUT', ({ completionTokens }) => completionTokens],
  ['USD', costCell],
  [{ title: 'OVER LIMIT', isExtra: true }, ({ limitRefusals }) => limitRefusals],
  [{ title: 'CACHE HITS', isExtra: true }, ({ cacheHits }) => cacheHits],
  // Descriptions are not unique.
  [{ title: 'KEY ID', isExtra: true }, ({ keyId }) => keyId ?? '-'],
];

/** `2026-01-31 12:00` by the hour, the date alone by the day. */
const startOf = (start: string, granularity: string): string =>
  granularity === 'day' ? start.slice(0, 10) : start.slice(0, 16).replace('T', ' ');

function show({ usage: { from, to, granularity, groupBy, rows } }: UsageReport, format: Format): void {
  const dimensions = groupBy.map((dimension) => DIMENSION_COLUMNS[dimension]);
  const timed = granularity !== 'total';
  const titles = [
    ...(timed ? [granularity.toUpperCase()] : []),
    ...dimensions.map(({ title }) => free(title)),
    ...NUMBER_COLUMNS.map(([title]) => title),
  ];
  const cells = rows.map((row) =>
    [
      ...(timed ? [startOf(row.start, granularity)] : []),
      ...dimensions.map(({ of }) => of(row) ?? '-'),
      ...NUMBER_COLUMNS.map(([, of]) => String(of(row))),
    ].map((text) => ({ text })),
  );
  printTable(titles, cells, `No calls from ${from} to ${to}.`, format);
  if (rows.length > 0) print(`\n${from} to ${to}, UTC`);
}
