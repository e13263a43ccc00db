import { type InspectColor, styleText } from 'node:util';
import { plainText } from '../../lib/plain-text.ts';

/** One line on stderr, under the program's name. */
export function warn(line: string): void {
  process.stderr.write(`portcullis: ${line}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2));

/** A cell of a table, coloured where the terminal shows colours. */
export interface Cell {
  readonly text: string;
  readonly colour?: InspectColor;
}

export const paint = (colour: InspectColor | undefined, text: string): string =>
  colour === undefined ? text : styleText(colour, text, { stream: process.stdout });

/** Prints rows in aligned columns under their titles, or the sentence for no rows. */
export function printTable(titles: readonly string[], rows: readonly (readonly Cell[])[], empty: string): void {
  if (rows.length === 0) {
    print(empty);
    return;
  }
  const table = [titles.map((text): Cell => ({ text, colour: 'dim' })), ...rows].map((cells) =>
    cells.map((cell) => ({ ...cell, text: plainText(cell.text) })),
  );
  const widths = titles.map((_, column) => Math.max(...table.map((cells) => cells[column]?.text.length ?? 0)));
  for (const cells of table) {
    const padded = cells.map(({ text, colour }, column) => {
      const last = column === cells.length - 1;
      return paint(colour, last ? text : text.padEnd(widths[column] ?? 0));
    });
    print(padded.join('  '));
  }
}
