import type { InspectColor } from 'node:util';
import type { Deletion, KeyAnswer, KeyRecord, KeyState } from '../generated/types.ts';
import { limitsText, windowText } from './limit-output.ts';
import { type Cell, print, printJson, printTable } from './output.ts';

interface Format {
  readonly json?: true;
}

const STATE_COLOURS: Readonly<Record<KeyState, InspectColor>> = {
  active: 'green',
  limit_reached: 'yellow',
  expired: 'red',
  disabled: 'red',
};

const TITLES = [
  'ID',
  'DESCRIPTION',
  'OWNER',
  'STATE',
  'TOKEN',
  'SPENT',
  'LIMIT',
  'SPENT IN WINDOW',
  'EXPIRES',
  'LAST USED',
];

const row = (key: KeyRecord): Cell[] => [
  { text: key.id },
  { text: key.description ?? '-' },
  { text: key.createdByEmail ?? 'has left' },
  { text: key.state, colour: STATE_COLOURS[key.state] },
  { text: key.maskedToken ?? '-' },
  { text: key.usage },
  { text: limitsText(key) },
  { text: windowText(key) },
  { text: key.expiresAt ?? 'never' },
  { text: key.lastUsedAt ?? 'never' },
];

export function showKeys(keys: readonly KeyRecord[], { json }: Format): void {
  if (json) printJson({ keys, nextCursor: null });
  else printTable(TITLES, keys.map(row), 'There are no keys.');
}

export function showKey(answer: KeyAnswer, { json }: Format): void {
  if (json) printJson(answer);
  else printTable(TITLES, [row(answer.key)], '');
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

export function showDeletedKey(deletion: Deletion, { json }: Format): void {
  if (json) printJson(deletion);
  else print(`Deleted ${deletion.id}.`);
}
