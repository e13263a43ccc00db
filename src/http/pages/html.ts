import { entryOf } from '../../lib/text.ts';

/** Markup that `html` made, and nobody else. */
export type { SafeHtml };

class SafeHtml {
  readonly #markup: string;

  constructor(markup: string) {
    this.#markup = markup;
  }

  toString(): string {
    return this.#markup;
  }
}

/** What may stand in a template: text is escaped, markup and lists of markup are taken as they are, the empty values are nothing. */
type Part = string | number | SafeHtml | readonly SafeHtml[] | false | null | undefined;

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entryOf(ENTITIES, character) ?? character);

function markupOf(part: Part): string {
  if (part === undefined || part === null || part === false) return '';
  if (part instanceof SafeHtml) return part.toString();
  return typeof part === 'object' ? part.join('') : escaped(String(part));
}

/** A template of HTML. Values stand between tags, or in attributes within double quotes: nowhere else are they safe. */
export const html = (pieces: TemplateStringsArray, ...parts: readonly Part[]): SafeHtml =>
  new SafeHtml(pieces.map((piece, index) => piece + markupOf(parts[index])).join(''));
