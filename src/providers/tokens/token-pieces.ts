/** The tokenizer's time grows with the square of a piece: 68 s for 400,000 times the same letter, 14 ms for 512 of the worst. */
export const MAX_PIECE_LENGTH = 512;

/** The last place before a space that a word follows: there the tokenizer cuts as well, so that no count changes. */
function beforeLastWord(text: string): number | undefined {
  for (let at = text.lastIndexOf(' ', text.length - 2); at > 0; at = text.lastIndexOf(' ', at - 1)) {
    if (/\S/u.test(text.charAt(at + 1))) return at;
  }
  return undefined;
}

/** The nearest place at or before `end` that does not part the two halves of one character. */
export function characterEnd(text: string, end: number): number {
  const code = text.charCodeAt(end - 1);
  return end < text.length && code >= 0xd800 && code <= 0xdbff ? end - 1 : end;
}

/** Cuts text into pieces of at most 512 characters, between words where it has any. */
export function* pieces(text: string): Generator<string, void, undefined> {
  let start = 0;
  while (text.length - start > MAX_PIECE_LENGTH) {
    const limit = start + MAX_PIECE_LENGTH;
    const word = beforeLastWord(text.slice(start, limit + 1));
    const end = word === undefined ? characterEnd(text, limit) : start + word;
    yield text.slice(start, end);
    start = end;
  }
  if (start < text.length) yield text.slice(start);
}
