import { type Answer, send } from './request.ts';

/** What browsers want of a page, and of a script's request. */
const [PAGE, ANY] = ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', '*/*'];

/** The parts of a browser that sign-in needs: cookies, the forms of the page that is shown, and the headers that go with them. */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** As they came, of the last answer. */
  setCookies: readonly string[] = [];
  readonly #origin: string;
  readonly #headers: readonly (readonly [string, string])[];
  #page = '';

  /** @param headers sent with every request, such as those of a proxy */
  constructor(origin: string, headers: Readonly<Record<string, string>> = {}) {
    this.#origin = origin;
    this.#headers = Object.entries(headers);
  }

  async get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    return this.#send('GET', path, Object.entries({ accept: PAGE, ...headers }));
  }

  /** Sends a form as it is, without what the page has for it. */
  async post(
    path: string,
    fields: Readonly<Record<string, string>> | string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    const body = typeof fields === 'string' ? fields : String(new URLSearchParams(fields));
    const all = { accept: PAGE, 'content-type': 'application/x-www-form-urlencoded', ...headers };
    return this.#send('POST', path, Object.entries(all), body);
  }

  /** Fills in and sends the form of the page that is shown which goes to this path. */
  async submit(
    action: string,
    fields: Readonly<Record<string, string>> = {},
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    return this.post(action, { ...this.hidden(action), ...fields }, { origin: this.#origin, ...headers });
  }

  /** The script of the page sends JSON. */
  async script(path: string, csrf: string, body?: unknown): Promise<Answer> {
    const headers: [string, string][] = [
      ['accept', ANY],
      ['x-csrf-token', csrf],
      ['origin', this.#origin],
    ];
    if (body === undefined) return this.#send('POST', path, headers);
    return this.#send('POST', path, [...headers, ['content-type', 'application/json']], JSON.stringify(body));
  }

  /** The hidden fields of the form that goes to this path. */
  hidden(action: string): Record<string, string> {
    const [, form] = new RegExp(`<form method="post" action="${action}"[^]*?>([^]*?)</form>`).exec(this.#page) ?? [];
    if (form === undefined) throw new Error(`no form goes to ${action} in ${this.#page}`);
    const inputs = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g);
    return Object.fromEntries([...inputs].map(([, name = '', value = '']) => [name, decoded(value)]));
  }

  async #send(
    method: string,
    path: string,
    headers: readonly (readonly [string, string])[],
    body?: string,
  ): Promise<Answer> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const sent = [...this.#headers, ...headers, ...(cookie === '' ? [] : [['cookie', cookie] as const])];
    const answer = await send(this.#origin, { method, path, headers: sent, ...(body === undefined ? {} : { body }) });
    this.setCookies = answer.headers['set-cookie'] ?? [];
    for (const line of this.setCookies) this.#keep(line);
    if (answer.headers['content-type']?.startsWith('text/html')) this.#page = answer.text;
    return answer;
  }

  #keep(line: string): void {
    const [pair = ''] = line.split(';', 1);
    const at = pair.indexOf('=');
    if (/; Max-Age=0(?:;|$)/.test(line)) this.cookies.delete(pair.slice(0, at));
    else this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
  }
}

const decoded = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** What a page tells people, without its markup. */
export const alertsOf = ({ text }: Answer): string[] =>
  [...text.matchAll(/<p [^>]*role="alert">([^<]+)<\/p>/g)].map(([, words = '']) => words);
