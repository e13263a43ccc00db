import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
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

/** Format of a list: `--json`, and `--wide` for all columns in full. */
export interface Format {
  readonly json?: true;
  readonly wide?: true | undefined;
}

/** A column of a table. By its title alone it is always shown, whole. */
export type Column = string | { readonly title: string; readonly isFree?: true; readonly isExtra?: true };

/** A column of names and sentences: they are shortened where a row is too wide. */
export const free = (title: string) => ({ title, isFree: true }) as const;

/** Columns that only `--wide` shows. */
export const extra = (...columns: readonly Column[]): Column[] =>
  columns.map((column) => ({ ...(typeof column === 'string' ? { title: column } : column), isExtra: true }));

/** `2026-11-25 17:33:51Z`. */
export const timeText = (time: string): string => time.replace('T', ' ').replace(/\.[0-9]+Z$/, 'Z');

/** Prints rows in aligned columns under their titles, or the sentence for no rows. */
export function printTable(
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  empty: string,
  format: Format = {},
): void {
  if (rows.length === 0) print(empty);
  else growingTable(columns, format)(rows);
}

/** Width of a terminal that does not state one. */
const USUAL_WIDTH = 120;
const BETWEEN = '  ';
/** Narrower than this no column gets. */
const NARROWEST = 8;

/** A table whose rows come one after the other: the titles come with the first, and a column grows with what it must hold. */
export function growingTable(columns: readonly Column[], { wide }: Format = {}) {
  const described = columns.map((column) => (typeof column === 'string' ? { title: column } : column));
  const isShown = described.map(({ isExtra }) => wide || !isExtra);
  const shown = described.filter((_, at) => isShown[at]);
  let waiting: Cell[][] = [shown.map(({ title }) => ({ text: title, colour: 'dim' }))];
  let needed = shown.map(({ isFree }) => ({ isFree: isFree && !wide, width: 0, least: NARROWEST }));
  return (rows: readonly (readonly Cell[])[]): void => {
    const plain = rows.map((cells) =>
      cells.filter((_, at) => isShown[at]).map((cell) => ({ ...cell, text: plainText(cell.text) })),
    );
    const table = [...waiting, ...plain];
    waiting = [];
    needed = needed.map(({ isFree, width, least }, column) => {
      const texts = table.map((cells) => cells[column]?.text ?? '');
      return {
        isFree,
        width: Math.max(width, ...texts.map(({ length }) => length)),
        least: isFree ? Math.max(least, ...texts.map((text) => shortened(text, NARROWEST).length)) : least,
      };
    });
    // Programs read what goes into a pipe: nothing of it is shortened.
    const widths = fitted(
      needed,
      process.stdout.isTTY ? process.stdout.columns || USUAL_WIDTH : Number.POSITIVE_INFINITY,
    );
    for (const cells of table) {
      const padded = cells.map(({ text, colour }, column) => {
        const short = shortened(text, widths[column] ?? 0);
        return paint(colour, column === cells.length - 1 ? short : short.padEnd(widths[column] ?? 0));
      });
      print(padded.join(BETWEEN));
    }
  };
}

interface Needed {
  readonly isFree: boolean | undefined;
  readonly width: number;
  readonly least: number;
}

/** Widths with which a row fits: the widest free column gives first, as long as one can. */
function fitted(columns: readonly Needed[], room: number): number[] {
  const widths = columns.map(({ isFree, width }) => (isFree ? Math.min(width, room) : width));
  let over = widths.reduce((sum, width) => sum + width + BETWEEN.length, -BETWEEN.length) - room;
  for (; over > 0; over -= 1) {
    const able = widths.map((width, at) => (columns[at]?.isFree && width > columns[at].least ? width : 0));
    const widest = Math.max(...able);
    if (widest === 0) break;
    widths[able.indexOf(widest)] = widest - 1;
  }
  return widths;
}

const IDS = /\b[a-z]+_[0-9a-f]{32}\b/g;

/** A text of this width at most, `…` at its end; but an id in it is shown whole or not at all, and the first part always. */
function shortened(text: string, width: number): string {
  if (text.length <= width) return text;
  const cut = [...text.matchAll(IDS)].find(({ index, 0: id }) => index < width && width <= index + id.length);
  if (cut === undefined) return `${text.slice(0, width - 1).replace(/[\uD800-\uDBFF]$/, '')}…`;
  if (cut.index > 0)
    return `${text
      .slice(0, cut.index)
      .trimEnd()
      .slice(0, width - 1)}…`;
  return cut[0].length === text.length ? text : `${cut[0]}…`;
}

/** Text on standard output, once the reader has taken what was written before. */
export async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

const BAR_WIDTH = 30;
const CLEAR_LINE = '\r\u001b[2K';
/** Milliseconds between two drawings. */
const DRAWING_INTERVAL_MS = 50;

export interface ProgressBar {
  /** Shows how far the work is; on a terminal in place, elsewhere not at all. */
  readonly show: (done: number, all: number) => void;
  /** Clears the line. */
  readonly end: () => void;
}

/** A progress bar on stderr, so that the output can be piped. */
export function progressBar(
  what: string,
  output: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
): ProgressBar {
  if (!output.isTTY) return { show: () => {}, end: () => {} };
  let drawnAt = 0;
  return {
    show: (done, all) => {
      const now = performance.now();
      if (done < all && now - drawnAt < DRAWING_INTERVAL_MS) return;
      drawnAt = now;
      const filled = Math.round((BAR_WIDTH * done) / all);
      output.write(`${CLEAR_LINE}${what} ${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} ${done}/${all}`);
    },
    end: () => void output.write(CLEAR_LINE),
  };
}

/** Asks on a terminal; where there is none, nobody agrees. */
export async function confirm(
  question: string,
  input: NodeJS.ReadableStream & { readonly isTTY?: boolean } = process.stdin,
  output: NodeJS.WritableStream & { readonly isTTY?: boolean } = process.stderr,
): Promise<boolean> {
  if (!input.isTTY || !output.isTTY) return false;
  const terminal = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
