// Signing in by e-mail and password: who gets in, what the others read, and when an e-mail is locked.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOrganization } from '../../../src/admin/tenants/organizations.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { removeMember } from '../../../src/store/tenants/member-records.ts';
import { alertsOf } from '../../support/browser.ts';
import { isSignedIn, MINUTE, PAGES, PASSWORD, type SignInGateway, signIn, startSignIn } from './members.ts';

let gateway: SignInGateway;
beforeAll(async () => {
  gateway = await startSignIn();
});
afterAll(() => gateway.close());

const UNFIT = 'The e-mail or password is incorrect.';

describe('a member', () => {
  it('signs in with e-mail and password, in whatever case the e-mail is written, and sees their account', async () => {
    gateway.addMember('ada@example.com', { name: 'Ada' });
    const browser = gateway.browser();
    const { status, headers } = await signIn(browser, ' Ada@Example.COM ');
    expect([status, headers.location]).toEqual([303, `${PAGES}/account`]);
    const { text } = await browser.get(`${PAGES}/account`);
    expect(text).toContain('<dd>ada@example.com</dd>');
    expect(gateway.audited()).toEqual(['session.create']);
  });

  it('signs in with a password whose letters another keyboard writes in other code points', async () => {
    gateway.addMember('angstrom@example.com');
    const browser = gateway.browser();
    await signIn(browser, 'angstrom@example.com');
    await browser.get(`${PAGES}/account`);
    const chosen = 'Ångström und Zufall';
    await browser.submit(`${PAGES}/account/password`, {
      current: PASSWORD,
      password: chosen.normalize('NFC'),
      again: chosen.normalize('NFC'),
    });
    expect((await signIn(gateway.browser(), 'angstrom@example.com', chosen.normalize('NFD'))).status).toBe(303);
  });

  it('who signs in again has a session of another id, and the one before is dead', async () => {
    gateway.addMember('again@example.com');
    const browser = gateway.browser();
    await signIn(browser, 'again@example.com');
    const [stolen] = [browser.cookies.get('portcullis_session') ?? ''];
    await browser.get(`${PAGES}/account`);
    const { csrf = '' } = browser.hidden(`${PAGES}/sign-out`);
    await browser.post(`${PAGES}/sign-in`, { csrf, email: 'again@example.com', password: PASSWORD });
    expect(browser.cookies.get('portcullis_session')).not.toBe(stolen);
    expect(await isSignedIn(browser)).toBe(true);
    const thief = gateway.browser();
    thief.cookies.set('portcullis_session', stolen);
    expect(await isSignedIn(thief)).toBe(false);
  });

  it('who has left cannot sign in, and reads what everyone reads', async () => {
    const id = gateway.addMember('left@example.com');
    removeMember(gateway.db, gateway.firstRun.organizationId, id, gateway.clock.now());
    const answer = await signIn(gateway.browser(), 'left@example.com');
    expect([answer.status, alertsOf(answer)]).toEqual([401, [UNFIT]]);
  });

  it('without a password cannot sign in with one', async () => {
    const answer = await signIn(gateway.browser(), gateway.firstRun.ownerEmail, '');
    expect([answer.status, alertsOf(answer)]).toEqual([400, ['Enter your password.']]);
    expect((await signIn(gateway.browser(), gateway.firstRun.ownerEmail, 'anything at all')).status).toBe(401);
  });
});

it('a wrong password and an e-mail that nobody has are answered alike', async () => {
  gateway.addMember('known@example.com');
  const known = await signIn(gateway.browser(), 'known@example.com', 'wrong password');
  const unknown = await signIn(gateway.browser(), 'nobody@example.com', 'wrong password');
  expect([known.status, alertsOf(known)]).toEqual([401, [UNFIT]]);
  const masked = (text: string): string =>
    text.replaceAll(/(known|nobody)@example\.com/g, 'e-mail').replaceAll(/(csrf" value|data-csrf)="[^"]+"/g, '$1=""');
  expect(masked(unknown.text)).toBe(masked(known.text));
  expect(unknown.status).toBe(known.status);
});

describe('after ten failures in a quarter of an hour', () => {
  const fail = async (email: string, times: number): Promise<number[]> => {
    const browser = gateway.browser();
    const statuses: number[] = [];
    for (let attempt = 0; attempt < times; attempt++) {
      statuses.push((await signIn(browser, email, `wrong password ${attempt}`)).status);
    }
    return statuses;
  };
  const LOCKED =
    'There were too many failed attempts with this e-mail. Try again in at most 15 minutes, use a passkey, or ask for a sign-in link.';

  it('the e-mail is locked, from every address and for the right password, and free again after another one', async () => {
    gateway.addMember('locked@example.com');
    expect(await fail('locked@example.com', 10)).toEqual(Array(10).fill(401));
    expect(gateway.audited()).toEqual(['member.lock']);
    const refused = await signIn(gateway.browser(), 'LOCKED@example.com');
    expect([refused.status, alertsOf(refused), refused.headers['retry-after']]).toEqual([429, [LOCKED], '900']);
    gateway.clock.advance(15 * MINUTE - 1);
    expect((await signIn(gateway.browser(), 'locked@example.com')).status).toBe(429);
    gateway.clock.advance(1);
    expect((await signIn(gateway.browser(), 'locked@example.com')).status).toBe(303);
  });

  it('so is one that nobody has, in the same words', async () => {
    expect(await fail('ghost@example.com', 11)).toEqual([...Array(10).fill(401), 429]);
    expect(alertsOf(await signIn(gateway.browser(), 'ghost@example.com'))).toEqual([LOCKED]);
  });

  it('many at once are ten, too', async () => {
    gateway.addMember('crowd@example.com');
    const browsers = await Promise.all(
      Array.from({ length: 14 }, async () => {
        const browser = gateway.browser();
        await browser.get(`${PAGES}/sign-in`);
        return browser;
      }),
    );
    const answers = await Promise.all(
      browsers.map((browser) =>
        browser.submit(`${PAGES}/sign-in`, { email: 'crowd@example.com', password: 'no way in' }),
      ),
    );
    const statuses = answers.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(4).fill(429)]);
  });

  it('e-mails that nobody has do not fill the database: the oldest counts are forgotten', async () => {
    const before = gateway.clock.now() - MINUTE;
    gateway.db.connection
      .prepare(
        `INSERT INTO sign_in_failures
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 10000)
         SELECT 'hash ' || n, 1, ? + n, NULL FROM number`,
      )
      .run(before);
    const count = gateway.db.connection.prepare<[], number>('SELECT count(*) FROM sign_in_failures').pluck();
    const full = count.get() ?? 0;
    await fail('flood@example.com', 1);
    expect(count.get()).toBeLessThanOrEqual(full);
    gateway.clock.advance(31 * MINUTE);
    await fail('flood@example.com', 3);
    expect(count.get()).toBeLessThan(full - 50);
  });

  it('nine do not lock, and are forgotten with their window; a success in between forgets none of them', async () => {
    gateway.addMember('nine@example.com');
    await fail('nine@example.com', 9);
    expect((await signIn(gateway.browser(), 'nine@example.com')).status).toBe(303);
    gateway.clock.advance(15 * MINUTE);
    await fail('nine@example.com', 9);
    expect((await signIn(gateway.browser(), 'nine@example.com')).status).toBe(303);
    expect(await fail('nine@example.com', 2)).toEqual([401, 429]);
  });

  it('guessing the current password of a session counts as much', async () => {
    gateway.addMember('guessed@example.com');
    const browser = gateway.browser();
    await signIn(browser, 'guessed@example.com');
    await browser.get(`${PAGES}/account`);
    const statuses: number[] = [];
    for (let attempt = 0; attempt < 11; attempt++) {
      const fields = { current: `guess number ${attempt}`, password: 'another password', again: 'another password' };
      statuses.push((await browser.submit(`${PAGES}/account/password`, fields)).status);
    }
    expect(statuses).toEqual([...Array(10).fill(401), 429]);
    expect((await signIn(gateway.browser(), 'guessed@example.com')).status).toBe(429);
  });
});

it('an address that sends more than sixty forms a minute is refused, in HTML', async () => {
  const browser = gateway.browser();
  let answer = await browser.post(`${PAGES}/sign-in`, {});
  for (let count = 1; count <= 60; count++) answer = await browser.post(`${PAGES}/sign-in`, {});
  expect([answer.status, answer.headers['content-type']]).toEqual([429, 'text/html; charset=utf-8']);
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
});

describe('an e-mail of members in several organizations', () => {
  const inOrganization = (name: string): string => {
    const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
    const body = { name, ownerEmail: `owner@${name}.example` };
    return createOrganization(gateway.db, body, { now: gateway.clock.now(), pepper }).organization.id;
  };

  it('with one password asks in which of them, once', async () => {
    const second = inOrganization('second');
    gateway.addMember('both@example.com');
    gateway.addMember('both@example.com', { organizationId: second });
    const browser = gateway.browser();
    const asked = await signIn(browser, 'both@example.com');
    expect([asked.status, asked.text]).toEqual([200, expect.stringContaining('<strong>second</strong>')]);
    expect(await isSignedIn(browser)).toBe(false);
    await signIn(browser, 'both@example.com');
    const chosen = await browser.submit(`${PAGES}/sign-in/organization`, { organization: second });
    expect([chosen.status, chosen.headers.location]).toEqual([303, `${PAGES}/account`]);
    expect((await browser.get(`${PAGES}/account`)).text).toContain('<dd>second</dd>');
  });

  it('cannot be used to choose one to which the password does not fit, nor by another browser', async () => {
    const third = inOrganization('third');
    const browser = gateway.browser();
    await signIn(browser, 'both@example.com');
    await browser.submit(`${PAGES}/sign-in/organization`, { organization: third });
    expect(await isSignedIn(browser)).toBe(false);
    const other = gateway.browser();
    await other.get(`${PAGES}/sign-in`);
    const { csrf = '' } = other.hidden(`${PAGES}/sign-in`);
    await other.post(`${PAGES}/sign-in/organization`, { csrf, organization: gateway.firstRun.organizationId });
    expect(await isSignedIn(other)).toBe(false);
  });
});
