// Pictures of a terminal for the front page, each made of the session that stands as text under it: `<!-- pictured: file.svg -->`
// goes before the block. Pages that show Markdown show the picture; programs and screen readers have the text.
import { readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.join(import.meta.dirname, '../..');

const PAGE = 'README.md';
const FOLDER = 'scripts/pages';

/** Sizes in pixels. A character of a monospaced font is 0.6 times as wide as it is high. */
const FONT = 14;
const CHARACTER = FONT * 0.6;
const LINE = 21;
const MARGIN = 20;
const TITLE_BAR = 36;
const COLUMNS = 116;

const COLOURS = { prompt: '#8fd694', heading: '#8b949e', denial: '#ff7b72', text: '#e6edf3' };

interface Line {
  readonly text: string;
  readonly colour: string;
}

const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function colourOf(line: string): string {
  if (line.startsWith('$ ')) return COLOURS.prompt;
  if (line.includes('Access denied')) return COLOURS.denial;
  // The head of a table is in capitals.
  return /^[A-Z][A-Z ]+$/.test(line) ? COLOURS.heading : COLOURS.text;
}

/** The lines as a terminal of so many columns shows them. */
const wrapped = (session: string): Line[] =>
  session.split('\n').flatMap((line) => {
    const pieces = line.match(new RegExp(`.{1,${COLUMNS}}`, 'g')) ?? [''];
    return pieces.map((text) => ({ text, colour: colourOf(line) }));
  });

/** @param title what the picture shows, for those who do not see it */
function draw(title: string, session: string): string {
  const lines = wrapped(session);
  const width = Math.ceil(COLUMNS * CHARACTER) + 2 * MARGIN;
  const height = TITLE_BAR + lines.length * LINE + MARGIN;
  const rows = lines.map(
    ({ text, colour }, index) =>
      `<text xml:space="preserve" x="${MARGIN}" y="${TITLE_BAR + (index + 1) * LINE - 4}" fill="${colour}">${escaped(text)}</text>`,
  );
  const lights = ['#ff5f57', '#febc2e', '#28c840'].map(
    (fill, index) => `<circle cx="${MARGIN + index * 20}" cy="${TITLE_BAR / 2}" r="6" fill="${fill}"/>`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="${FONT}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" rx="10" fill="#0d1117"/>`,
    ...lights,
    ...rows,
    '</svg>',
    '',
  ].join('\n');
}

/** The pictures as they should be, by their paths from the root. */
export function terminalPictures(): Map<string, string> {
  const page = readFileSync(path.join(root, PAGE), 'utf8');
  const marked = page.matchAll(/^<!-- pictured: ([\w-]+\.svg) -->\n+```console\n([\s\S]+?)\n```$/gm);
  const titles = new Map(
    [...page.matchAll(/!\[([^\]]+)\]\(scripts\/pages\/([\w-]+\.svg)\)/g)].map(([, title = '', file = '']) => [
      file,
      title,
    ]),
  );
  return new Map(
    [...marked].map(([, file = '', session = '']) => [`${FOLDER}/${file}`, draw(titles.get(file) ?? '', session)]),
  );
}
