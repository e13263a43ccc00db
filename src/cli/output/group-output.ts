import { withName } from '../../domain/id.ts';
import type { GroupAnswer, GroupChangeAnswer, GroupDeletion, GroupRecord } from '../../generated/types.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from '../terminal/output.ts';
import { showWidening } from './rule-output.ts';

export function showGroups(groups: readonly GroupRecord[], format: Format): void {
  if (format.json) {
    printJson({ groups, nextCursor: null });
    return;
  }
  const rows = groups.map(({ id, name, members, keys, description, createdAt }): Cell[] => [
    { text: name },
    { text: id },
    { text: String(members.length) },
    { text: String(keys.length) },
    { text: description ?? '-' },
    { text: timeText(createdAt) },
  ]);
  const columns = [free('NAME'), 'ID', 'MEMBERS', 'KEYS', free('DESCRIPTION'), ...extra('CREATED')];
  printTable(columns, rows, 'There are no groups.', format);
}

/** A group and who is in it. */
export function showGroup(answer: GroupAnswer | GroupChangeAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { id, name, description, members, keys } = answer.group;
  print(`${withName(id, name)}${description === null ? '' : `: ${description}`}`);
  print('');
  const rows: Cell[][] = [
    ...members.map((member) => [{ text: 'member' }, { text: member.id }, { text: member.email }]),
    ...keys.map((key) => [{ text: 'key' }, { text: key.id }, { text: key.description || '-' }]),
  ];
  printTable(['IN IT', 'ID', free('NAME')], rows, 'Nobody is in it.');
}

/** A changed group, and what the rules newly permit. */
export function showGroupChange(change: GroupChangeAnswer, format: Format): void {
  showGroup(change, format);
  if (format.json) return;
  print('');
  showWidening(change.widens);
}

export function showGroupDeletion(deletion: GroupDeletion, { json }: Format): void {
  if (json) {
    printJson(deletion);
    return;
  }
  print(`Removed ${deletion.id}.`);
  showWidening(deletion.widens);
}
