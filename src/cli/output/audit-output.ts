import type { AuditList, AuditRecord } from '../../generated/types.ts';
import { counted } from '../../lib/counted.ts';
import { entryOf } from '../../lib/text.ts';
import type { ChainVerdict } from '../../store/audit/audit-chain.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from '../terminal/output.ts';

const TITLES = ['SEQ', 'TIME', free('BY'), 'ACTION', free('TARGET'), free('CHANGED'), ...extra('TARGET ID')];

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
function by({ actor: { kind, name, memberEmail } }: AuditRecord): string {
  if (kind === 'cli') return name === null ? 'command line' : `${name} on the command line`;
  return memberEmail === null ? (name ?? '-') : `${memberEmail} by ${name}`;
}

const row = (entry: AuditRecord): Cell[] => [
  { text: String(entry.seq) },
  { text: timeText(entry.createdAt) },
  { text: by(entry) },
  { text: entry.action, ...(/\.(delete|remove|revoke)$/.test(entry.action) ? { colour: 'red' } : {}) },
  { text: entry.target.name ?? entry.target.id },
  { text: changedFields(entry) },
  { text: entry.target.id },
];

export function showAudit(list: AuditList, format: Format): void {
  if (format.json) printJson(list);
  else printTable(TITLES, list.entries.map(row), 'There are no entries.', format);
}

/** What is wrong with the chain; undefined: it holds. */
function faultOf({ head, fault, sawNoted }: ChainVerdict, noted: string | undefined): string | undefined {
  if (fault?.kind === 'missing') return `entry ${fault.seq} is missing`;
  if (fault !== undefined) {
    const other = fault.seq === 1 ? ', or was written under another signing key' : '';
    return `entry ${fault.seq} is not what was written there${other}`;
  }
  if (noted === undefined || sawNoted) return undefined;
  const end = head === undefined ? 'the log is empty' : `it ends with entry ${head.seq}`;
  return `the noted head is not in it, so that entries were taken away at the end: ${end}`;
}

/** Says that the chain holds, and its head. @throws Error where it does not hold */
export function showVerdict(verdict: ChainVerdict, noted: string | undefined, json: true | undefined): void {
  const { head } = verdict;
  const fault = faultOf(verdict, noted);
  if (json)
    printJson({ holds: fault === undefined, entries: head?.seq ?? 0, head: head ?? null, fault: fault ?? null });
  if (fault !== undefined) throw new Error(`The audit log is not intact: ${fault}.`);
  if (json) return;
  if (head === undefined) print('The audit log is intact: it is empty.');
  else print(`The audit log is intact: ${counted(head.seq, 'entry', 'entries')}.\nHead: ${head.hmac}`);
}
