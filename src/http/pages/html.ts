import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Context } from 'koa';
import type { ApiError } from '../../domain/errors.ts';
import { entryOf } from '../../lib/text.ts';
import type { FaultForm, RequestContext } from '../state.ts';

/** Path of the sign-in and consent pages. */
export const PAGES = '/oauth/interaction';

interface Page {
  /** Title of the window; the page has a heading of its own. */
  readonly title: string;
  readonly body: SafeHtml;
  /** Default: 200. */
  readonly status?: number;
  /** Origins to which a form of the page may lead besides its own, by a redirect too. */
  readonly formAction?: readonly string[];
  /** Lets the script of the page speak to the gateway, for passkeys. */
  readonly passkeys?: boolean;
}

/** Sends a page in the one layout, kept by nobody and framed by nobody. */
export function sendPage(ctx: Pick<Context, 'status' | 'set' | 'type' | 'body'>, page: Page): void {
  ctx.status = page.status ?? 200;
  ctx.set(pageHeaders(page));
  ctx.type = 'text/html';
  ctx.body = markup(page);
}

/** Leads on to another page, by GET. @param place a local path, or a checked address */
export function seeOther(ctx: RequestContext, place: string): void {
  ctx.status = 303;
  ctx.set({ 'cache-control': 'no-store', location: place });
  ctx.body = '';
}

/** A failure at the pages' paths is a page for a browser, and the error envelope for a script. */
export function pageFaultForm({ path, req }: RequestContext): FaultForm | undefined {
  if (path !== PAGES && !path.startsWith(`${PAGES}/`)) return undefined;
  return prefersPages(req) ? FAULT_PAGE : FAULT_ENVELOPE;
}

/**
 * Browsers name pages first, scripts JSON, any type or none. Weights are not read: what Koa parses this header with takes time with
 * the square of its length.
 */
function prefersPages({ headers: { accept = '' } }: IncomingMessage): boolean {
  const types = accept.toLowerCase();
  const [page, json] = [types.indexOf('text/html'), types.indexOf('application/json')];
  return page !== -1 && (json === -1 || page < json);
}

/**
 * `same-origin`, not `no-referrer`: with that, browsers send `Origin: null` with forms, and their origin could not be checked.
 * Other sites get no address either way, and the tokens in ours reach ourselves alone.
 */
const REFERRER_POLICY = 'same-origin';

/** An origin, or a scheme: without what separates the parts of a header. */
const SOURCE = /^[a-z][a-z0-9+.-]*:(?:\/\/[a-z0-9_.:[\]-]+)?$/;

function pageHeaders({ formAction = [], passkeys = false }: Partial<Page>): Record<string, string> {
  if (!formAction.every((source) => SOURCE.test(source))) throw new Error(`no source of a policy: ${formAction}`);
  const policy = [
    "default-src 'none'",
    "style-src 'self'",
    "script-src 'self'",
    "img-src 'self' data:",
    ...(passkeys ? ["connect-src 'self'"] : []),
    ["form-action 'self'", ...formAction].join(' '),
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ];
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': REFERRER_POLICY,
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
  };
}

/** A gate, for the window's tab. In the page itself: browsers ask for `/favicon.ico` otherwise. */
const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M2 15V7a6 6 0 0 1 12 0v8M5 3v12M8 1v14M11 3v12M2 8h12M2 12h12' fill='none' stroke='%23356bd8' stroke-width='1.4'/%3E%3C/svg%3E";

function markup({ title, body }: Page): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · Portcullis</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${assetUrl('style.css')}">
<script type="module" src="${assetUrl('page.js')}"></script>
</head>
<body>
<header class="brand">Portcullis</header>
<main>
${body}
</main>
</body>
</html>
`.toString();
}

const FAULT_PAGE: FaultForm = {
  type: 'text/html',
  text: (error) => markup(faultPage(error)),
  headers: () => pageHeaders({}),
};

/** Kept by nobody, either: at the same address there may be a page. */
const FAULT_ENVELOPE: FaultForm = {
  type: 'application/json',
  text: (error) => JSON.stringify(error.envelope()),
  headers: () => ({ 'cache-control': 'no-store' }),
};

/** Headings of failures for people; HTTP's own words are for programs. */
const HEADINGS: ReadonlyMap<number, string> = new Map([
  [400, 'This did not work'],
  [401, 'Sign in first'],
  [403, 'This is not allowed'],
  [404, 'This link no longer works'],
  [413, 'That was too long'],
  [429, 'Too many tries'],
  [503, 'Busy right now'],
]);

/** A failure, for a person. @param heading default: by the status */
export function faultPage({ status, message }: Pick<ApiError, 'status' | 'message'>, heading?: string): Page {
  const title = heading ?? HEADINGS.get(status) ?? STATUS_CODES[status] ?? 'Error';
  return {
    title,
    body: html`<section class="card">
<h1>${title}</h1>
<p role="alert">${message}</p>
<p><a href="${PAGES}/sign-in">Go to sign-in</a></p>
</section>`,
  };
}

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

/** Values of a template: text is escaped, markup and lists of markup are taken as they are, the empty values are nothing. */
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

export type AssetName = 'style.css' | 'page.js';

interface Asset {
  readonly type: string;
  readonly bytes: Buffer;
  readonly digest: string;
}

function readAsset(name: AssetName, type: string): Asset {
  const bytes = readFileSync(new URL(`assets/${name}`, import.meta.url));
  return { type, bytes, digest: hash('sha256', bytes, 'base64url').slice(0, 16) };
}

export const ASSETS: Readonly<Record<AssetName, Asset>> = {
  'style.css': readAsset('style.css', 'text/css'),
  'page.js': readAsset('page.js', 'text/javascript'),
};

/** Changes with the content, which may be kept for ever under it. */
const assetUrl = (name: AssetName): string => `/oauth/interaction/assets/${name}?${ASSETS[name].digest}`;
