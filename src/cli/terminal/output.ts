import { once } from 'node:events';
import { type InspectColor, styleText } from 'node:util';
import { plainText } from '../../lib/text.ts';

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
  if (rows.length === 0) print(empty);
  else growingTable(titles)(rows);
}

/** A table whose rows come one after the other: the titles come with the first, and a column grows with what it must hold. */
export function growingTable(titles: readonly string[]): (rows: readonly (readonly Cell[])[]) => void {
  let waiting = [titles.map((text): Cell => ({ text, colour: 'dim' }))];
  let widths = titles.map(() => 0);
  return (rows) => {
    const table = [...waiting, ...rows].map((cells) => cells.map((cell) => ({ ...cell, text: plainText(cell.text) })));
    waiting = [];
    widths = widths.map((width, column) => Math.max(width, ...table.map((cells) => cells[column]?.text.length ?? 0)));
    for (const cells of table) {
      const padded = cells.map(({ text, colour }, column) => {
        const last = column === cells.length - 1;
        return paint(colour, last ? text : text.padEnd(widths[column] ?? 0));
      });
      print(padded.join('  '));
    }
  };
}

/** Text on standard output, once the reader has taken what was written before. */
export async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}
