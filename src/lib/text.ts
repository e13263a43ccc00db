// Text that others wrote: how a table is asked for it, which of its characters people could not see, and which name it may mean.

import { hash, timingSafeEqual } from 'node:crypto';
import { distance } from 'fastest-levenshtein';

/**
 * The entry of a table by a name from outside. A plain object also answers to what every object inherits (`constructor`,
 * `toString`), and `__proto__` is its prototype: only its own entries count. `test/architecture.test.ts` sends all look-ups here.
 */
export const entryOf = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined;

/** Characters that end a line, or command a terminal. */
const CONTROLS = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/**
 * Those, and all that take no room of their own: marks of direction, which make a text read as another one, zero-width characters,
 * fillers, tags, halves of surrogate pairs, and marks of annotations.
 */
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\uFFF9-\uFFFB]/u;
const ALL_HIDDEN = /[\p{Cs}\p{Default_Ignorable_Code_Point}\uFFF9-\uFFFB]/gu;

/** Characters of most texts: none of them is hidden. */
const PLAIN = /^[ -~]*$/;

/** A picture in a text, with the joiners and selectors that make it one: there they can be seen. */
const EMOJI =
  /(\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?)*|[0-9#*]\uFE0F\u20E3)/u;

/** A text in parts: those with an odd index are pictures. */
const partsOf = (text: string): string[] => text.split(EMOJI);

/** The first character that people could not see, as `U+202E`; undefined: there is none. */
export function hiddenCharacter(text: string): string | undefined {
  if (PLAIN.test(text) || !HIDDEN.test(text)) return undefined;
  const found = partsOf(text).flatMap((part, index) => (index % 2 === 1 ? [] : (HIDDEN.exec(part) ?? [])));
  const [code] = found.map((character) => character.codePointAt(0) ?? 0);
  return code === undefined ? undefined : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** A text that a machine wrote, as it is shown to people: a blank for each control character, and nothing that cannot be seen. */
export function plainText(text: string): string {
  if (PLAIN.test(text) || !HIDDEN.test(text)) return text;
  const parts = partsOf(text).map((part, index) =>
    index % 2 === 1 ? part : part.replace(CONTROLS, ' ').replace(ALL_HIDDEN, ''),
  );
  return parts.join('');
}

/** Most edits between a text and the name that may have been meant: one for each four characters, and never more than three. */
const editsFor = ({ length }: string): number => Math.min(3, Math.max(1, Math.floor(length / 4)));

/** The fewest edits away, in whatever case; of several the longest, since a longer prefix means less. @param most edits */
export function nearest(written: string, names: Iterable<string>, most = editsFor(written)): string | undefined {
  const wanted = written.toLowerCase();
  let edits = most;
  let found: string | undefined;
  for (const name of names) {
    if (Math.abs(name.length - wanted.length) > edits) continue;
    const between = editsBetween(wanted, name.toLowerCase());
    if (between > edits || (between === edits && name.length <= (found ?? '').length)) continue;
    edits = between;
    found = name;
  }
  return found;
}

/** Two letters that changed places are nearer than two wrong ones. */
function editsBetween(a: string, b: string): number {
  const edits = distance(a, b);
  return edits === 2 && lettersOf(a) === lettersOf(b) ? 1 : edits;
}

const lettersOf = (text: string): string => [...text].sort().join('');

/** A text without the slashes at its end. The expression for it would take time with the square of the slashes in its midst. */
export function withoutFinalSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** Count of something, in words: `1 key`, `2 keys`. @param many for a noun that takes more than an `s` */
export const counted = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** Takes as long for any text, so that a secret cannot be found out letter by letter. */
export const isSameSecret = (given: string, expected: string): boolean =>
  timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', expected, 'buffer'));
