/** Text for a cell: what is no code is no HTML, and nothing ends the cell. */
const cellText = (text: string): string =>
  text.replaceAll(/(`[^`]*`)|[<|]/g, (found, code?: string) => code?.replaceAll('|', '\\|') ?? `\\${found}`);

export const code = (text: string): string => `\`${text}\``;

/** Several parts in one cell, each on a line of its own; those that are empty are left out. */
export const lines = (...parts: string[]): string => parts.filter((part) => part !== '').join('\n');

/** A table whose columns align in the source too; the last one, of sentences, is as long as they are. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map((cell) => cellText(cell).replaceAll('\n', '<br>')));
  const last = head.length - 1;
  const widths = head.map((title, column) =>
    column === last ? title.length : Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(column === last ? 0 : (widths[column] ?? 0))).join(' | ')} |`;
  const [titles = [], ...body] = cells;
  const rule = `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`;
  return [line(titles), rule, ...body.map(line)].join('\n');
}

/** Sections, each with a title and what stands under it. */
export const sections = (parts: Iterable<readonly [title: string, text: string]>): string =>
  [...parts].map(([title, text]) => `### ${title}\n\n${text}`).join('\n\n');
