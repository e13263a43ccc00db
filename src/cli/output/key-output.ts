import type { InspectColor } from 'node:util';
import type { Deletion, KeyAnswer, KeyRecord, KeyState } from '../../generated/types.ts';
import { type Cell, extra, type Format, free, print, printJson, printTable, timeText } from '../terminal/output.ts';
import { limitsText, minuteColumn, windowText } from './limit-output.ts';

const STATE_COLOURS: Readonly<Record<KeyState, InspectColor>> = {
  active: 'green',
  limit_reached: 'yellow',
  expired: 'red',
  disabled: 'red',
};

const TITLES = [
  ...[free('DESCRIPTION'), 'ID', free('OWNER'), 'STATE', 'USD SPENT', 'USD LIMIT'],
  ...extra(free('PROJECT'), 'TOKEN', 'USD SPENT IN WINDOW', 'EXPIRES', 'LAST USED'),
];

/** By their ids. */
type ProjectNames = ReadonlyMap<string, string>;

const row = (key: KeyRecord, projects: ProjectNames): Cell[] => [
  { text: key.description ?? '-' },
  { text: key.id },
  { text: key.createdByEmail ?? 'has left' },
  { text: key.state, colour: STATE_COLOURS[key.state] },
  { text: key.usage },
  { text: limitsText(key) },
  { text: projects.get(key.projectId) ?? key.projectId },
  { text: key.maskedToken ?? '-' },
  { text: windowText(key) },
  { text: timeText(key.expiresAt ?? 'never') },
  { text: timeText(key.lastUsedAt ?? 'never') },
];

/** Limits a minute and tags have a column where there are any. */
function printKeys(keys: readonly KeyRecord[], projects: ProjectNames, format: Format): void {
  const minute = minuteColumn(keys);
  const areTagged = keys.some(({ tags }) => tags.length > 0);
  printTable(
    [...TITLES, ...extra(...minute.titles, ...(areTagged ? [free('TAGS')] : []))],
    keys.map((key) => [
      ...row(key, projects),
      ...minute.cells(key),
      ...(areTagged ? [{ text: key.tags.join(', ') || '-' }] : []),
    ]),
    'There are no keys.',
    format,
  );
}

export function showKeys(keys: readonly KeyRecord[], projects: ProjectNames, format: Format): void {
  if (format.json) printJson({ keys, nextCursor: null });
  else printKeys(keys, projects, format);
}

export function showKey(answer: KeyAnswer, projects: ProjectNames, { json }: Format): void {
  if (json) printJson(answer);
  else printKeys([answer.key], projects, { wide: true });
}

/** A key whose token is shown once: after it was made, or rolled. */
export function showNewKey(answer: KeyAnswer, { json }: Format): void {
  if (json) {
    printJson(answer);
    return;
  }
  const { id, token, previousTokenEndsAt } = answer.key;
  print(`${id}\n\n  ${token}\n\nThis token is shown once, now. Keep it.`);
  if (previousTokenEndsAt !== null) print(`The old one is accepted too until ${previousTokenEndsAt}.`);
}

/** The new token of a key, and its applications: those that end, and those that go on. */
export function showRolledKey(rolled: KeyAnswer, format: Format): void {
  showNewKey(rolled, format);
  if (format.json) return;
  const { ended, kept } = rolled.applications ?? { ended: [], kept: [] };
  for (const { clientName, endsAt } of ended) {
    print(
      `The application ${clientName} ${endsAt === undefined ? 'has ended' : 'ends with the old token'}: register it again.`,
    );
  }
  for (const { clientName } of kept)
    print(`The application ${clientName} goes on. To end it, roll with --end-applications all.`);
}

export function showDeletedKey(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Deleted ${deletion.id}.`);
}
