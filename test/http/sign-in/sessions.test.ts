// Sessions: how long they live, who ends them, and what their cookies look like.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { changeMember, removeMember } from '../../../src/admin/tenants/members.ts';
import type { Browser } from '../../support/browser.ts';
import { HOUR, isSignedIn, MINUTE, PAGES, PASSWORD, type SignInGateway, signIn, startSignIn } from './members.ts';

let gateway: SignInGateway;
beforeAll(async () => {
  gateway = await startSignIn();
});
afterAll(() => gateway.close());

const COOKIE = 'portcullis_session';

async function signedIn(email: string): Promise<Browser> {
  const browser = gateway.browser();
  await signIn(browser, email);
  expect(await isSignedIn(browser)).toBe(true);
  return browser;
}

describe('a session', () => {
  it('ends after twelve hours without use', async () => {
    gateway.addMember('idle@example.com');
    const browser = await signedIn('idle@example.com');
    gateway.clock.advance(12 * HOUR - MINUTE);
    expect(await isSignedIn(browser)).toBe(true);
    gateway.clock.advance(12 * HOUR);
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('ends seven days after it began, however much it is used', async () => {
    gateway.addMember('busy@example.com');
    const browser = await signedIn('busy@example.com');
    for (let hours = 0; hours < 7 * 24 - 8; hours += 8) {
      gateway.clock.advance(8 * HOUR);
      expect(await isSignedIn(browser)).toBe(true);
    }
    gateway.clock.advance(8 * HOUR);
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('is dead on the next request when the member is removed', async () => {
    const id = gateway.addMember('removed@example.com');
    const browser = await signedIn('removed@example.com');
    const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
    removeMember(gateway.db, actor, id, gateway.clock.now());
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('has the role that the member has now', async () => {
    const id = gateway.addMember('promoted@example.com');
    const browser = await signedIn('promoted@example.com');
    const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
    changeMember(gateway.db, actor, id, { role: 'admin' }, gateway.clock.now());
    expect((await browser.get(`${PAGES}/account`)).text).toContain('<dd>admin</dd>');
  });

  it('ends by signing out, for a copy of its cookie too', async () => {
    gateway.addMember('out@example.com');
    const browser = await signedIn('out@example.com');
    const copy = gateway.browser();
    copy.cookies.set(COOKIE, browser.cookies.get(COOKIE) ?? '');
    gateway.audited();
    const { status, headers } = await browser.submit(`${PAGES}/sign-out`);
    expect([status, headers.location, browser.cookies.has(COOKIE)]).toEqual([303, `${PAGES}/sign-in`, false]);
    expect([await isSignedIn(copy), gateway.audited()]).toEqual([false, ['session.delete']]);
  });

  it('of someone else cannot be ended', async () => {
    gateway.addMember('victim@example.com');
    gateway.addMember('rival@example.com');
    const victim = await signedIn('victim@example.com');
    const [{ id: session } = { id: '' }] = gateway.db.connection
      .prepare<[], { id: string }>('SELECT id FROM sessions ORDER BY id DESC')
      .all();
    const rival = await signedIn('rival@example.com');
    const { csrf = '' } = rival.hidden(`${PAGES}/sign-out`);
    await rival.post(`${PAGES}/account/sessions/end`, { csrf, session });
    expect(await isSignedIn(victim)).toBe(true);
  });

  it('can be ended from another one, alone or with all others', async () => {
    gateway.addMember('many@example.com');
    const [first, second, third] = [
      await signedIn('many@example.com'),
      await signedIn('many@example.com'),
      await signedIn('many@example.com'),
    ];
    const page = await third.get(`${PAGES}/account`);
    const [, oldest = ''] = [...page.text.matchAll(/name="session" value="(sess_\w+)"/g)].map(([, id]) => id);
    await third.submit(`${PAGES}/account/sessions/end`, { session: oldest });
    expect([await isSignedIn(first), await isSignedIn(second), await isSignedIn(third)]).toEqual([false, true, true]);
    await third.submit(`${PAGES}/account/sessions/end`, { session: 'others' });
    expect([await isSignedIn(second), await isSignedIn(third)]).toEqual([false, true]);
  });

  it('ends with a new password everywhere else, and has another id where it was set', async () => {
    gateway.addMember('changed@example.com');
    const [browser, other] = [await signedIn('changed@example.com'), await signedIn('changed@example.com')];
    const before = browser.cookies.get(COOKIE) ?? '';
    await browser.get(`${PAGES}/account`);
    gateway.audited();
    const fields = { current: PASSWORD, password: 'another good one', again: 'another good one' };
    const { status } = await browser.submit(`${PAGES}/account/password`, fields);
    expect([status, await isSignedIn(browser), await isSignedIn(other)]).toEqual([303, true, false]);
    expect(gateway.audited().toSorted()).toEqual([
      'member.set_password',
      'session.create',
      'session.delete',
      'session.delete',
    ]);
    const copy = gateway.browser();
    copy.cookies.set(COOKIE, before);
    expect(await isSignedIn(copy)).toBe(false);
    expect((await signIn(gateway.browser(), 'changed@example.com')).status).toBe(401);
    expect((await signIn(gateway.browser(), 'changed@example.com', 'another good one')).status).toBe(303);
  });

  it('is one of twenty at most: the oldest one ends', async () => {
    gateway.addMember('crowd@example.com');
    const browsers: Browser[] = [];
    for (let count = 0; count < 21; count++) {
      const browser = gateway.browser();
      await signIn(browser, 'crowd@example.com');
      browsers.push(browser);
    }
    const alive = await Promise.all(browsers.map(isSignedIn));
    expect(alive).toEqual([false, ...Array(20).fill(true)]);
  });
});

describe('a password that is chosen', () => {
  const refusals: readonly [what: string, fields: Record<string, string>, fault: string][] = [
    ['that is too short', { password: 'nine char' }, 'Use at least 10 characters.'],
    ['that is too long', { password: 'x'.repeat(129) }, 'Use at most 128 characters.'],
    ['that is the e-mail', { password: 'Chooser@Example.com' }, 'Your e-mail address cannot be your password.'],
    ['that is typed differently', { password: 'good enough', again: 'good enougj' }, 'The passwords do not match.'],
    ['without the current one', { password: 'good enough', current: 'wrong' }, 'The current password is incorrect.'],
  ];

  it.each(refusals)('%s is refused next to its field', async (what, fields, fault) => {
    const email = 'chooser@example.com';
    if (what === refusals[0]?.[0]) gateway.addMember(email);
    const browser = await signedIn(email);
    const sent = { current: PASSWORD, again: fields.password ?? '', ...fields };
    const { status, text } = await browser.submit(`${PAGES}/account/password`, sent);
    expect([status, text]).toEqual([what.includes('current') ? 401 : 400, expect.stringContaining(`>${fault}</p>`)]);
    expect((await signIn(gateway.browser(), email)).status).toBe(303);
  });

  it('may have 128 characters, whatever their size', async () => {
    gateway.addMember('long@example.com');
    const browser = await signedIn('long@example.com');
    const password = '🔑'.repeat(128);
    const { status } = await browser.submit(`${PAGES}/account/password`, {
      current: PASSWORD,
      password,
      again: password,
    });
    expect(status).toBe(303);
    expect((await signIn(gateway.browser(), 'long@example.com', password)).status).toBe(303);
  });
});

describe('the database', () => {
  it('holds neither cookies nor passwords', async () => {
    gateway.addMember('stored@example.com');
    const browser = await signedIn('stored@example.com');
    gateway.db.connection.pragma('wal_checkpoint(FULL)');
    const bytes = gateway.db.connection.serialize();
    expect(bytes.includes('stored@example.com')).toBe(true);
    expect([bytes.includes(browser.cookies.get(COOKIE) ?? ''), bytes.includes(PASSWORD)]).toEqual([false, false]);
    const hash = gateway.db.connection
      .prepare("SELECT passwordHash FROM members WHERE email = 'stored@example.com'")
      .pluck()
      .get();
    expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  });
});

describe('its cookie', () => {
  it('is HttpOnly, SameSite=Lax, for the whole host, and without a name for TLS where there is none', async () => {
    gateway.addMember('cookie@example.com');
    const browser = gateway.browser();
    const shown = await browser.get(`${PAGES}/sign-in`);
    expect(shown.headers['set-cookie']).toEqual([
      expect.stringMatching(/^portcullis_form=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/),
    ]);
    await browser.submit(`${PAGES}/sign-in`, { email: 'cookie@example.com', password: PASSWORD });
    expect(browser.setCookies).toEqual([
      expect.stringMatching(/^portcullis_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=604800$/),
    ]);
  });

  it('is Secure and bound to its host where PUBLIC_URL is https; one without the prefix is not read', async () => {
    const secure = await startSignIn({ PUBLIC_URL: 'https://gateway.example' });
    try {
      secure.addMember('tls@example.com');
      const browser = secure.browser();
      await browser.get(`${PAGES}/sign-in`);
      const origin = { origin: 'https://gateway.example', host: 'gateway.example' };
      const answer = await browser.submit(`${PAGES}/sign-in`, { email: 'tls@example.com', password: PASSWORD }, origin);
      expect([answer.status, browser.setCookies]).toEqual([
        303,
        [
          expect.stringMatching(
            /^__Host-portcullis_session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=604800$/,
          ),
        ],
      ]);
      expect([...browser.cookies.keys()]).toEqual(['__Host-portcullis_form', '__Host-portcullis_session']);
      expect(await isSignedIn(browser)).toBe(true);
      const tossed = secure.browser();
      tossed.cookies.set(COOKIE, browser.cookies.get('__Host-portcullis_session') ?? '');
      expect(await isSignedIn(tossed)).toBe(false);
    } finally {
      await secure.close();
    }
  });

  it('leads to the page of applications on the listener that has one', async () => {
    gateway.addMember('links@example.com');
    const browser = await signedIn('links@example.com');
    const management = gateway.browser(gateway.management);
    management.cookies.set(COOKIE, browser.cookies.get(COOKIE) ?? '');
    const linked = [browser, management].map(async (each) =>
      (await each.get(`${PAGES}/account`)).text.includes(`href="${PAGES}/applications"`),
    );
    expect(await Promise.all(linked)).toEqual([true, false]);
  });

  it('is Secure on the management listener where its proxy says https', async () => {
    const browser = gateway.browser(gateway.management);
    await browser.get(`${PAGES}/sign-in`);
    expect(browser.setCookies).toEqual([expect.not.stringContaining('Secure')]);
    await browser.get(`${PAGES}/sign-in`, { 'x-forwarded-proto': 'https' });
    expect(browser.setCookies).toEqual([expect.stringMatching(/^__Host-portcullis_form=.*; Secure$/)]);
  });

  it('opens both listeners, which are one host', async () => {
    gateway.addMember('both@example.com');
    const browser = await signedIn('both@example.com');
    const management = gateway.browser(gateway.management);
    management.cookies.set(COOKIE, browser.cookies.get(COOKIE) ?? '');
    expect(await isSignedIn(management)).toBe(true);
    expect((await management.submit(`${PAGES}/sign-out`)).status).toBe(303);
    expect(await isSignedIn(browser)).toBe(false);
  });
});
