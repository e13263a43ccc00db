import type { InspectColor } from 'node:util';
import type { Deletion, KeyAnswer, KeyRecord, KeyState } from '../generated/types.ts';
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

const TITLES = ['ID', 'DESCRIPTION', 'STATE', 'TOKEN', 'SPENT', 'LIMIT', 'EXPIRES', 'LAST USED'];

/** Both limits in one cell: `25 in all, 10 per 1 day`. */
function limits(key: KeyRecord): string {
  const total = key.usageLimit === null ? [] : [`${key.usageLimit} in all`];
  const period =
    key.periodUsageLimit === null
      ? []
      : [`${key.periodUsageLimit} per ${key.periodUsageDurationValue} ${key.periodUsageDurationUnit}`];
  return [...total, ...period].join(', ') || '-';
}

const row = (key: KeyRecord): Cell[] => [
  { text: key.id },
  { text: key.description ?? '-' },
  { text: key.state, colour: STATE_COLOURS[key.state] },
  { text: key.maskedToken ?? '-' },
  { text: key.usage },
  { text: limits(key) },
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
