// What all pages have in common: headers, escaping, and no answer below their path that is not a page.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSignInLink } from '../../../src/admin/sign-in/sign-in-links.ts';
import { createInvitation } from '../../../src/admin/tenants/invitations.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import type { Answer } from '../../support/request.ts';
import { PAGES, type SignInGateway, signIn, startSignIn } from './members.ts';

const HOSTILE = `<script>alert("x")</script>'&`;
const ESCAPED = '&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;';

let gateway: SignInGateway;
const pages: [what: string, answer: Answer][] = [];

beforeAll(async () => {
  gateway = await startSignIn();
  gateway.addMember('ada@example.com', { name: HOSTILE });
  const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
  const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
  const write = { now: gateway.clock.now(), pepper };
  const link = createSignInLink(gateway.db, actor, 'ada@example.com', write);
  const { invitation } = createInvitation(gateway.db, actor, { email: 'new@example.com', role: 'admin' }, write);
  const browser = gateway.browser();
  const get = async (path: string): Promise<void> => {
    pages.push([path.replace(/\?token.*/, ''), await browser.get(path)]);
  };
  await get(`${PAGES}/sign-in?next=${encodeURIComponent(HOSTILE)}`);
  await get(`${PAGES}/link?token=${link.token}`);
  await get(`${PAGES}/link?token=${encodeURIComponent(HOSTILE)}`);
  await get(`${PAGES}/invitation?token=${invitation.token}`);
  await get(`${PAGES}/nothing/here`);
  pages.push(['a wrong password', await signIn(browser, HOSTILE, HOSTILE)]);
  pages.push(['a form without its token', await gateway.browser().post(`${PAGES}/sign-in`, {})]);
  await signIn(browser, 'ada@example.com');
  await get(`${PAGES}/account`);
  pages.push(['the management listener', await gateway.browser(gateway.management).get(`${PAGES}/sign-in`)]);
});
afterAll(() => gateway.close());

it('every page has the headers that keep it to itself', () => {
  expect(pages.map(([what, { status }]) => [what, status])).toEqual([
    [`${PAGES}/sign-in?next=${encodeURIComponent(HOSTILE)}`, 200],
    [`${PAGES}/link`, 200],
    [`${PAGES}/link`, 404],
    [`${PAGES}/invitation`, 200],
    [`${PAGES}/nothing/here`, 404],
    ['a wrong password', 401],
    ['a form without its token', 403],
    [`${PAGES}/account`, 200],
    ['the management listener', 200],
  ]);
  for (const [what, { headers }] of pages) {
    expect({ what, ...headers }).toMatchObject({
      what,
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
    });
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
  }
});

it('no page holds markup that someone wrote, an inline script or style, or anything from elsewhere', () => {
  for (const [what, { text }] of pages) {
    expect([what, text.includes('<script>'), /<style|\son\w+=|\sstyle=|javascript:/.test(text)]).toEqual([
      what,
      false,
      false,
    ]);
    expect(text).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(text).toMatch(/<title>[^<]+ · Portcullis<\/title>/);
    const places = [...text.matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, place = '']) => place);
    expect(places.filter((place) => !/^(?:\/oauth\/interaction\/|data:image|http:\/\/localhost:)/.test(place))).toEqual(
      [],
    );
  }
});

it('a hostile name, e-mail and address are shown as text', () => {
  const textOf = (what: string): string => pages.find(([name]) => name.startsWith(what))?.[1].text ?? '';
  expect(textOf(`${PAGES}/account`)).toContain(`<dd>${ESCAPED}</dd>`);
  expect(textOf('a wrong password')).toContain(`value="${ESCAPED}"`);
  expect(textOf(`${PAGES}/sign-in`)).toContain(`name="next" value="${ESCAPED}"`);
});

describe('fields', () => {
  it('have labels, and say to password managers what they are', () => {
    for (const [what, { text }] of pages) {
      const inputs = [...text.matchAll(/<input (?![^>]*(?:type="hidden"| hidden))[^>]*id="([^"]+)"[^>]*>/g)];
      for (const [input, id] of inputs) {
        expect([what, text.includes(`<label for="${id}">`), / autocomplete="[a-z-]+"/.test(input)]).toEqual([
          what,
          true,
          true,
        ]);
      }
    }
    const [, signInPage] = pages[0] ?? [];
    expect(signInPage?.text).toMatch(/autocomplete="username"[\s\S]*autocomplete="current-password"/);
  });
});

describe('the stylesheet and the script', () => {
  it('are found under an address that changes with them, and are kept for ever', async () => {
    const named = await gateway.browser().get(`${PAGES}/sign-in`, { host: 'localhost' });
    const places = [...named.text.matchAll(/(?:src|href)="([^"]*\/assets\/[^"]*)"/g)].map(([, place = '']) => place);
    expect(places).toEqual([
      expect.stringMatching(/\/style\.css\?[\w-]{16}$/),
      expect.stringMatching(/\/page\.js\?[\w-]{16}$/),
    ]);
    const answers = await Promise.all(places.map((place) => gateway.browser().get(place)));
    expect(answers.map(({ status, headers }) => [status, headers['content-type'], headers['cache-control']])).toEqual([
      [200, 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
      [200, 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
    ]);
  });

  it('the script may speak to us alone, and only where passkeys can be', async () => {
    const named = await gateway.browser().get(`${PAGES}/sign-in`, { host: 'localhost' });
    expect(named.headers['content-security-policy']).toContain("connect-src 'self'");
    const [, numbered] = pages[0] ?? [];
    expect(numbered?.headers['content-security-policy']).not.toContain('connect-src');
  });
});

it('what fails at other paths is JSON as before', async () => {
  const { headers } = await gateway.browser().get('/oauth/other');
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
});
