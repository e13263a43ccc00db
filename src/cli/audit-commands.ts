import { existsSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { listAudit } from '../admin/audit/audit.ts';
import { readHeadFile } from '../admin/audit/audit-head.ts';
import { AUDIT_ACTIONS } from '../admin/audit/audit-trail.ts';
import { readConfig } from '../config/config.ts';
import type { AuditList, AuditRecord } from '../generated/types.ts';
import { counted, entryOf } from '../lib/text.ts';
import type { HistoryFault } from '../store/ledger/verify-calls.ts';
import { type HistoryVerdict, verifyHistory } from '../store/ledger/verify-history.ts';
import { type CommonOptions, listing } from './terminal/options.ts';
import {
  type Cell,
  extra,
  type Format,
  free,
  print,
  printJson,
  printTable,
  progressBar,
  timeText,
} from './terminal/output.ts';
import { type Environment, inDatabase, inWorkspace, secretsOf, type Workspace } from './workspace.ts';

interface ListOptions extends CommonOptions {
  readonly action?: string;
  readonly target?: string;
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
}

interface VerifyOptions {
  readonly head?: string;
  readonly json?: true;
}

const MAX_PAGE = 200;

function parseLimit(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

function parseHead(text: string): string {
  if (/^[0-9a-f]{64}$/.test(text)) return text;
  const inFile = existsSync(text) ? readHeadFile(text) : undefined;
  if (inFile !== undefined) return inFile.hmac;
  throw new InvalidArgumentError('It must be the 64 digits that verify printed, or a file that AUDIT_HEAD_FILE named.');
}

/** The newest entries that are asked for, page by page. */
function newest({ db, actor }: Workspace, { limit, action, target, from, to }: ListOptions) {
  const entries: AuditRecord[] = [];
  let cursor: string | undefined;
  for (;;) {
    const page = { limit: Math.min(limit - entries.length, MAX_PAGE), cursor };
    const listed = listAudit(db, actor, { ...page, action, targetId: target, from, to });
    entries.push(...listed.entries);
    const { nextCursor } = listed;
    if (nextCursor === null || entries.length === limit) return { entries, nextCursor };
    cursor = nextCursor;
  }
}

/** The head that was noted earlier: the one that is given, or else the one in the environment's file. */
function notedHead(env: Environment, given: string | undefined): string | undefined {
  const { auditHeadFile } = readConfig(env);
  return given ?? (auditHeadFile === undefined ? undefined : readHeadFile(auditHeadFile)?.hmac);
}

async function verify(env: Environment, noted: string | undefined): Promise<HistoryVerdict> {
  const bar = progressBar('Verifying');
  try {
    return await inDatabase(
      env,
      'read',
      (db, config) => verifyHistory(db, secretsOf(config).signingKey.key, noted, bar.show),
      'signing key',
    );
  } finally {
    bar.end();
  }
}

const VERIFY_HELP = `
The head is the last entry. Who notes it elsewhere, and gives it as --head the next time, also learns when entries were taken
away at the end, or all of them. A server with AUDIT_HEAD_FILE writes the head there itself. The log is one chain over all organizations of the installation.`;

/** `portcullis audit …`. */
export function auditCommands(program: Command, env: Environment): void {
  const audit = program.command('audit').description('Show the audit log, and verify that no one has changed it.');

  listing(audit.command('list'))
    .description(
      'List the management changes, newest first. With `--json` each has the states before and after and its place in the chain.',
    )
    .addOption(new Option('--action <action>', 'only these').choices(AUDIT_ACTIONS))
    .option('--target <id>', 'only changes of this key, rule, member, …')
    .option('--from <time>', 'not before this time or day: 2026-01-31, 2026-01-31T12:00:00Z')
    .option('--to <time>', 'before this time, or to the end of this day')
    .addOption(new Option('--limit <n>', 'how many at most').argParser(parseLimit).default(50))
    .action(async (options: ListOptions) => {
      showAudit(await inWorkspace(env, 'read', options.org, (workspace) => newest(workspace, options)), options);
    });

  audit
    .command('verify')
    .description(
      'Verify every entry; at the first broken one, print it and exit with 1. Otherwise the head of the log is printed.',
    )
    .addOption(
      new Option('--head <hmac>', 'a head that was noted earlier, or its file; default: AUDIT_HEAD_FILE').argParser(
        parseHead,
      ),
    )
    .option('--json', 'print JSON')
    .addHelpText('after', VERIFY_HELP)
    .action(async ({ head, json }: VerifyOptions) => {
      const noted = notedHead(env, head);
      showVerdict(await verify(env, noted), noted, json);
    });
}

const AUDIT_TITLES = ['SEQ', 'TIME', free('BY'), 'ACTION', free('TARGET'), free('CHANGED'), ...extra('TARGET ID')];

/** The fields whose values differ, but for the time of the change itself. */
function changedFields({ before, after }: AuditRecord): string {
  if (before === null || after === null) return '-';
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  names.delete('updatedAt');
  const changed = [...names].filter(
    (name) => JSON.stringify(entryOf(before, name)) !== JSON.stringify(entryOf(after, name)),
  );
  return changed.join(', ') || 'nothing';
}

/** `root on the command line`, `ada@example.com by First master key`, or the job. */
function actorText({ actor: { kind, name, memberEmail } }: AuditRecord): string {
  if (kind === 'cli') return name === null ? 'command line' : `${name} on the command line`;
  return memberEmail === null ? (name ?? '-') : `${memberEmail} by ${name}`;
}

const auditRow = (entry: AuditRecord): Cell[] => [
  { text: String(entry.seq) },
  { text: timeText(entry.createdAt) },
  { text: actorText(entry) },
  { text: entry.action, ...(/\.(delete|remove|revoke)$/.test(entry.action) ? { colour: 'red' } : {}) },
  { text: entry.target.name ?? entry.target.id },
  { text: changedFields(entry) },
  { text: entry.target.id },
];

function showAudit(list: AuditList, format: Format): void {
  if (format.json) printJson(list);
  else printTable(AUDIT_TITLES, list.entries.map(auditRow), 'There are no entries.', format);
}

/** The fault in the chain; undefined: the chain holds. */
function chainFault({ head, fault, sawNoted }: HistoryVerdict, noted: string | undefined): string | undefined {
  if (fault?.kind === 'missing') return `entry ${fault.seq} is missing`;
  if (fault !== undefined) {
    const other = fault.seq === 1 ? ', or was written under another signing key' : '';
    return `entry ${fault.seq} is not what was written there${other}`;
  }
  if (noted === undefined || sawNoted) return undefined;
  const end = head === undefined ? 'the log is empty' : `it ends with entry ${head.seq}`;
  return `the noted head is not in it, so that entries were taken away at the end: ${end}`;
}

const faultText = ({ kind, table, row, block }: HistoryFault): string =>
  `${table}, ${row}${block === null || table === 'call_blocks' ? '' : `, in block ${block}`}: ${kind}`;

/** Lines of faults that are printed; `--json` has more. */
const SHOWN = 20;

function faultsText(faults: readonly HistoryFault[]): string {
  const shown = faults.slice(0, SHOWN).map(faultText).join('\n  ');
  const more = faults.length > SHOWN ? `\n  and ${faults.length - SHOWN} more` : '';
  return `${counted(faults.length, 'row is', 'rows are')} not what the audit log says:\n  ${shown}${more}`;
}

function sealedText({ blocks, unsealed }: HistoryVerdict): string {
  const waiting = unsealed === 0 ? '' : `, ${counted(unsealed, 'call is', 'calls are')} not sealed yet`;
  return `The call log is intact: ${counted(blocks, 'block')}${waiting}.`;
}

/** Says that the history holds, and its head. @throws Error where it does not hold */
function showVerdict(verdict: HistoryVerdict, noted: string | undefined, json: true | undefined): void {
  const { head, faults, blocks, unsealed } = verdict;
  const fault = chainFault(verdict, noted);
  const holds = fault === undefined && faults.length === 0;
  if (json) {
    const entries = head?.seq ?? 0;
    printJson({ holds, entries, head: head ?? null, fault: fault ?? null, faults, blocks, unsealedCalls: unsealed });
  }
  if (fault !== undefined) throw new Error(`The audit log is not intact: ${fault}.`);
  if (faults.length > 0) throw new Error(faultsText(faults));
  if (json) return;
  if (head === undefined) print('The audit log is intact: it is empty.');
  else print(`The audit log is intact: ${counted(head.seq, 'entry', 'entries')}.\nHead: ${head.hmac}`);
  if (blocks > 0 || unsealed > 0) print(sealedText(verdict));
}
