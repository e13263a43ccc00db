// Text that others wrote: how a table is asked for it, and which of its characters people could not see.

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

/** What most texts are made of: nothing of it is hidden. */
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
