/** A text without the slashes at its end. The expression for it would take time with the square of the slashes in its midst. */
export function withoutFinalSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}
