// Forms are taken from our own pages only, and addresses lead nowhere else: cross-site requests, open redirects, hostile bodies.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf } from '../../support/chat.ts';
import { isSignedIn, PAGES, PASSWORD, type SignInGateway, signIn, startSignIn } from './members.ts';

let gateway: SignInGateway;
beforeAll(async () => {
  gateway = await startSignIn();
  gateway.addMember('ada@example.com');
});
afterAll(() => gateway.close());

const CREDENTIALS = { email: 'ada@example.com', password: PASSWORD };
const SIGN_IN = `${PAGES}/sign-in`;

describe('a form', () => {
  it('without a token, with a foreign one or without a cookie is 403, and nothing happens', async () => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    const other = gateway.browser();
    await other.get(SIGN_IN);
    const { csrf = '' } = other.hidden(SIGN_IN);
    const statuses = [
      (await browser.post(SIGN_IN, CREDENTIALS)).status,
      (await browser.post(SIGN_IN, { ...CREDENTIALS, csrf })).status,
      (await gateway.browser().post(SIGN_IN, { ...CREDENTIALS, csrf })).status,
    ];
    expect([statuses, await isSignedIn(browser)]).toEqual([[403, 403, 403], false]);
  });

  it('of a session takes the token of that session alone, not the one that the browser had before', async () => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    const { csrf: visitors = '' } = browser.hidden(SIGN_IN);
    await browser.submit(SIGN_IN, CREDENTIALS);
    expect((await browser.post(`${PAGES}/sign-out`, { csrf: visitors })).status).toBe(403);
    expect(await isSignedIn(browser)).toBe(true);
  });

  it.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['a page without an origin', { origin: 'null' }],
    ['another port of the same host', { origin: 'http://127.0.0.1:1' }],
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['a neighbour', { 'sec-fetch-site': 'same-site' }],
  ])('of %s is 403, whatever token it has', async (_, headers) => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    expect((await browser.submit(SIGN_IN, CREDENTIALS, headers)).status).toBe(403);
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('of our own page is taken, as browsers send it', async () => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    expect((await browser.submit(SIGN_IN, CREDENTIALS, { 'sec-fetch-site': 'same-origin' })).status).toBe(303);
  });

  it('of the other listener is not: it is another origin', async () => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    expect((await browser.submit(SIGN_IN, CREDENTIALS, { origin: gateway.management })).status).toBe(403);
  });

  const bodies: readonly [what: string, body: string, headers: Record<string, string>, status: number][] = [
    ['of more than 16 kB', `email=${'x'.repeat(16_384)}`, {}, 413],
    ['of another type', '{"email":"ada@example.com"}', { 'content-type': 'application/json' }, 415],
    ['of several parts', 'x', { 'content-type': 'multipart/form-data; boundary=x' }, 415],
    ['that is encoded', 'email=x', { 'content-encoding': 'gzip' }, 415],
    ['of more than 64 fields', 'a=1&'.repeat(64), {}, 400],
  ];
  it.each(bodies)('%s is refused, in HTML', async (_, body, headers, status) => {
    const answer = await gateway.browser().post(SIGN_IN, body, headers);
    expect([answer.status, answer.headers['content-type']]).toEqual([status, 'text/html; charset=utf-8']);
  });

  it('with a field twice is 400', async () => {
    const browser = gateway.browser();
    await browser.get(SIGN_IN);
    const { csrf = '' } = browser.hidden(SIGN_IN);
    const body = new URLSearchParams([...Object.entries({ ...CREDENTIALS, csrf }), ['email', 'other@example.com']]);
    expect((await browser.post(SIGN_IN, String(body))).status).toBe(400);
  });
});

describe('the page after sign-in', () => {
  const locationAfter = async (next: string): Promise<string | undefined> => {
    const browser = gateway.browser();
    await browser.get(`${SIGN_IN}?${new URLSearchParams({ next })}`);
    return (await browser.submit(SIGN_IN, CREDENTIALS)).headers.location;
  };

  it.each(['/oauth/interaction/abc?x=1&y=%2F', '/', '/oauth/interaction/account#sessions'])('is %s', async (next) => {
    expect(await locationAfter(next)).toBe(next);
  });

  it.each([
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    'https://evil.example',
    'javascript:alert(1)',
    'evil',
    ' //evil.example',
    '/x\\..\\..\\evil',
    '/å',
    `/${'x'.repeat(2048)}`,
  ])('is never %j', async (next) => {
    expect(await locationAfter(next)).toBe(`${PAGES}/account`);
  });

  it('is never elsewhere for who is signed in already', async () => {
    const browser = gateway.browser();
    await signIn(browser, CREDENTIALS.email);
    const { status, headers } = await browser.get(`${SIGN_IN}?next=//evil.example`);
    expect([status, headers.location]).toEqual([303, `${PAGES}/account`]);
  });

  it('is the one that asked for a session', async () => {
    const { status, headers } = await gateway.browser().get(`${PAGES}/account?done=password`);
    expect([status, headers.location]).toEqual([
      303,
      `${SIGN_IN}?${new URLSearchParams({ next: `${PAGES}/account?done=password` })}`,
    ]);
    const posted = await gateway.browser().post(`${PAGES}/sign-out`, {});
    expect([posted.status, posted.headers['content-type']]).toEqual([401, 'text/html; charset=utf-8']);
  });
});

describe('what goes wrong', () => {
  const PAGE = 'text/html; charset=utf-8';
  const JSON_TYPE = 'application/json; charset=utf-8';

  it.each([
    ['of a browser', 'text/html,application/xhtml+xml,*/*;q=0.8', PAGE],
    ['that names pages first', 'TEXT/HTML, application/json', PAGE],
    ['that names JSON first', 'application/json, text/html;q=0.5', JSON_TYPE],
    ['of curl', '*/*', JSON_TYPE],
    ['without an Accept', '', JSON_TYPE],
  ])('is told a request %s in the form that it wants', async (_, accept, type) => {
    const { status, headers, text } = await gateway.browser().get(`${PAGES}/nothing`, { accept });
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([404, type, 'no-store']);
    expect(text.startsWith('<!doctype html>')).toBe(type === PAGE);
  });

  it('is the error envelope for a script: a form without its token, without a session, of another type, and beyond the limit', async () => {
    const browser = gateway.browser();
    const post = (path: string, more: Readonly<Record<string, string>> = {}) =>
      browser.post(PAGES + path, '', { accept: 'application/json', ...more });
    const answers = [
      await post('/sign-in'),
      await post('/sign-out'),
      await post('/sign-in', { 'content-type': 'application/json' }),
    ];
    for (let sent = answers.length; sent < 60; sent += 1) await post('/sign-in');
    answers.push(await post('/sign-in'), await browser.script(`${PAGES}/sign-in/passkey/options`, 'no token'));
    expect(answers.map((answer) => [answer.status, errorOf(answer).code])).toEqual([
      [403, 'permission_denied'],
      [401, 'not_signed_in'],
      [415, 'unsupported_media_type'],
      [429, 'rate_limit_exceeded'],
      [429, 'rate_limit_exceeded'],
    ]);
  });
});
