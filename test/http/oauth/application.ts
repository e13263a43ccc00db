// An application that connects by OAuth, and the member at its browser.
import { createHash, randomBytes } from 'node:crypto';
import { startSession } from '../../../src/admin/sign-in/sessions.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { Browser } from '../../support/browser.ts';
import type { TestGateway } from '../../support/gateway.ts';
import type { Answer } from '../../support/request.ts';

export const REDIRECT = 'http://127.0.0.1:33418/callback';

export interface Tokens {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly expires_in: number;
  readonly scope: string;
  readonly token_type: string;
}

/** An answer of an endpoint. */
export interface Reply {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;
}

async function reply(sent: Promise<Response>): Promise<Reply> {
  const answer = await sent;
  const text = await answer.text();
  return { status: answer.status, body: Object(text === '' ? {} : JSON.parse(text)), headers: answer.headers };
}

/** Calls an endpoint with a form. */
export const postForm = (
  origin: string,
  path: string,
  fields: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> => reply(fetch(origin + path, { method: 'POST', body: new URLSearchParams(fields), headers }));

/** Registers a client (RFC 7591). */
export const register = (
  origin: string,
  metadata: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> =>
  reply(
    fetch(`${origin}/oauth/register`, {
      method: 'POST',
      body: JSON.stringify(metadata),
      headers: { 'content-type': 'application/json', ...headers },
    }),
  );

export const getJson = (url: string, headers: Readonly<Record<string, string>> = {}): Promise<Reply> =>
  reply(fetch(url, { headers }));

/** A browser in which the owner, or another member, is signed in. */
export function signedIn(gateway: TestGateway, memberId = gateway.memberId, now = Date.now()): Browser {
  const browser = new Browser(gateway.origin);
  const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
  const member = { organizationId: gateway.firstRun.organizationId, id: memberId };
  const { secret } = startSession(gateway.db, member, 'link', { now, pepper });
  const isSecure = gateway.config.publicUrl?.startsWith('https:') === true;
  browser.cookies.set(isSecure ? '__Host-portcullis_session' : 'portcullis_session', secret);
  return browser;
}

/** The owner's browser goes where an application leads it, and they allow it a new key. @returns where the browser is led back to */
export async function allowAt(gateway: TestGateway, { pathname, search }: URL): Promise<URL> {
  const browser = signedIn(gateway);
  const { headers } = await browser.get(pathname + search);
  const page = headers.location ?? '';
  await browser.get(page);
  const answered = await browser.submit(page, { ...newKey(gateway), answer: 'allow' });
  const back = await browser.get(new URL(answered.headers.location ?? 'about:blank').pathname);
  return new URL(back.headers.location ?? 'about:blank');
}

/** An application that runs on a person's machine. */
export class Application {
  readonly gateway: TestGateway;
  readonly browser: Browser;
  readonly #verifier = randomBytes(32).toString('base64url');
  #clientId: string;

  /** @param clientId of one that need not register */
  constructor(gateway: TestGateway, browser = signedIn(gateway), clientId = '') {
    this.gateway = gateway;
    this.browser = browser;
    this.#clientId = clientId;
  }

  get clientId(): string {
    return this.#clientId;
  }

  async register(metadata: object = {}): Promise<void> {
    const { body } = await register(this.gateway.origin, {
      client_name: 'Test application',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...metadata,
    });
    this.#clientId = String(body.client_id);
  }

  /** Where the application sends the browser. */
  authorizePath(params: Readonly<Record<string, string>> = {}): string {
    const challenge = createHash('sha256').update(this.#verifier).digest('base64url');
    return `/oauth/authorize?${new URLSearchParams({
      response_type: 'code',
      client_id: this.#clientId,
      redirect_uri: REDIRECT,
      code_challenge: challenge,
      code_challenge_method: 'S256',
      state: 'the state',
      ...params,
    })}`;
  }

  /** Leads the browser to the page of consent. @returns that page, or what came instead */
  async askConsent(params: Readonly<Record<string, string>> = {}): Promise<{ path: string; page: Answer }> {
    const { headers, ...refused } = await this.browser.get(this.authorizePath(params));
    const path = headers.location ?? '';
    return path.startsWith('/')
      ? { path, page: await this.browser.get(path) }
      : { path, page: { headers, ...refused } };
  }

  /** Answers the page of consent. @returns where the browser is led in the end */
  async answer(path: string, fields: Readonly<Record<string, string>>): Promise<URL> {
    const answered = await this.browser.submit(path, fields);
    const resume = new URL(answered.headers.location ?? `about:${answered.status}`);
    const { headers } = await this.browser.get(resume.pathname + resume.search);

    return new URL(headers.location ?? 'about:blank');
  }

  /** The code that the person's consent gives, by default for a new key without a limit. */
  async code(
    choices: Readonly<Record<string, string>> = {},
    params: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    if (this.#clientId === '') await this.register();
    const { path } = await this.askConsent(params);
    const back = await this.answer(path, { ...newKey(this.gateway), answer: 'allow', ...choices });
    return back.searchParams.get('code') ?? '';
  }

  /** Exchanges a code for tokens. */
  exchange(code: string): Promise<Reply> {
    return this.token({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT });
  }

  refresh(refreshToken: string | undefined): Promise<Reply> {
    return this.token({ grant_type: 'refresh_token', refresh_token: refreshToken ?? '' });
  }

  /** Connects as people do. */
  async connect(
    choices: Readonly<Record<string, string>> = {},
    params: Readonly<Record<string, string>> = {},
  ): Promise<Tokens> {
    return tokensOf((await this.exchange(await this.code(choices, params))).body);
  }

  token(fields: Readonly<Record<string, string>>): Promise<Reply> {
    const all = fields.grant_type === 'authorization_code' ? { code_verifier: this.#verifier, ...fields } : fields;
    return postForm(this.gateway.origin, '/oauth/token', { client_id: this.#clientId, ...all });
  }
}

/** The choices of the page for a key that is made. */
export const newKey = ({ firstRun }: TestGateway) => ({
  key: 'new',
  project: firstRun.projectId,
  limit: '',
  window: 'month',
  days: '90',
});

export function tokensOf(body: Readonly<Record<string, unknown>>): Tokens {
  const { access_token, refresh_token, expires_in, scope, token_type } = body;
  if (typeof access_token !== 'string') throw new Error(`no token: ${JSON.stringify(body)}`);
  return {
    access_token,
    ...(typeof refresh_token === 'string' ? { refresh_token } : {}),
    expires_in: Number(expires_in),
    scope: String(scope),
    token_type: String(token_type),
  };
}
