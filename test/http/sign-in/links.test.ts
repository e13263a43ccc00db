// Links that are used once: signing in by one, and becoming a member by an invitation.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSignInLink } from '../../../src/admin/sign-in/sign-in-links.ts';
import { createInvitation, revokeInvitation } from '../../../src/admin/tenants/invitations.ts';
import { removeMember } from '../../../src/admin/tenants/members.ts';
import { generateSecret } from '../../../src/domain/id.ts';
import { loadSecrets } from '../../../src/store/secrets/secrets.ts';
import { HOUR, isSignedIn, PAGES, PASSWORD, type SignInGateway, signIn, startSignIn } from './members.ts';

let gateway: SignInGateway;
beforeAll(async () => {
  gateway = await startSignIn();
});
afterAll(() => gateway.close());

const LINK = `${PAGES}/link`;
const INVITATION = `${PAGES}/invitation`;
const CHOSEN = { password: 'a password of mine', again: 'a password of mine' };

const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;
const write = () => {
  const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
  return { now: gateway.clock.now(), pepper };
};
const makeLink = (email: string): string => {
  const { token } = createSignInLink(gateway.db, actor(), email, write());
  gateway.audited();
  return token;
};
const invite = (email: string): { id: string; token: string } => {
  const { invitation } = createInvitation(gateway.db, actor(), { email, role: 'admin' }, write());
  gateway.audited();
  return { id: invitation.id, token: invitation.token ?? '' };
};

describe('a link to sign in', () => {
  it('of the first run lets the owner set a password, and is used up by that alone', async () => {
    const { signInToken, ownerEmail } = gateway.firstRun;
    const scanner = gateway.browser();
    for (let times = 0; times < 3; times++) {
      expect((await scanner.get(`${LINK}?token=${signInToken}`)).text).toContain(ownerEmail);
    }
    const browser = gateway.browser();
    await browser.get(`${LINK}?token=${signInToken}`);
    const { status, headers } = await browser.submit(LINK, { ...CHOSEN, action: 'password' });
    expect([status, headers.location, await isSignedIn(browser)]).toEqual([303, `${PAGES}/account`, true]);
    expect(gateway.audited()).toEqual(['sign_in_link.use', 'member.set_password', 'session.create']);
    expect((await scanner.submit(LINK, { ...CHOSEN, action: 'password' })).status).toBe(404);
    expect((await scanner.get(`${LINK}?token=${signInToken}`)).status).toBe(404);
    expect((await signIn(gateway.browser(), ownerEmail, CHOSEN.password)).status).toBe(303);
  });

  it('is used once, even by two at the same time', async () => {
    gateway.addMember('twice@example.com');
    const token = makeLink('twice@example.com');
    const browsers = [gateway.browser(), gateway.browser()];
    for (const browser of browsers) await browser.get(`${LINK}?token=${token}`);
    const answers = await Promise.all(
      browsers.map((browser) => browser.submit(LINK, { ...CHOSEN, action: 'password' })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([303, 404]);
  });

  it('signs in without a new password, and leaves the one that there is', async () => {
    gateway.addMember('kept@example.com');
    const browser = gateway.browser();
    await browser.get(`${LINK}?token=${makeLink('kept@example.com')}`);
    expect((await browser.submit(LINK, { action: 'continue' })).status).toBe(303);
    expect([await isSignedIn(browser), gateway.audited()]).toEqual([true, ['sign_in_link.use', 'session.create']]);
    expect((await signIn(gateway.browser(), 'kept@example.com')).status).toBe(303);
  });

  it('ends the sessions of those who knew the old password', async () => {
    gateway.addMember('hijacked@example.com');
    const thief = gateway.browser();
    await signIn(thief, 'hijacked@example.com');
    const browser = gateway.browser();
    await browser.get(`${LINK}?token=${makeLink('hijacked@example.com')}`);
    await browser.submit(LINK, { ...CHOSEN, action: 'password' });
    expect([await isSignedIn(thief), await isSignedIn(browser)]).toEqual([false, true]);
  });

  it('works while the e-mail is locked', async () => {
    gateway.addMember('locked@example.com');
    const attacker = gateway.browser();
    for (let attempt = 0; attempt < 11; attempt++) await signIn(attacker, 'locked@example.com', 'guess after guess');
    expect((await signIn(gateway.browser(), 'locked@example.com')).status).toBe(429);
    const browser = gateway.browser();
    await browser.get(`${LINK}?token=${makeLink('locked@example.com')}`);
    await browser.submit(LINK, { action: 'continue' });
    expect(await isSignedIn(browser)).toBe(true);
  });

  it('with a password that is refused is not used up', async () => {
    gateway.addMember('retry@example.com');
    const browser = gateway.browser();
    await browser.get(`${LINK}?token=${makeLink('retry@example.com')}`);
    const refused = await browser.submit(LINK, { password: 'short', again: 'short', action: 'password' });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('Use at least 10 characters.')]);
    expect((await browser.submit(LINK, { ...CHOSEN, action: 'password' })).status).toBe(303);
  });

  it('signs in as its own member, also where another is signed in, and that session ends', async () => {
    gateway.addMember('old@example.com');
    gateway.addMember('new@example.com');
    const browser = gateway.browser();
    await signIn(browser, 'old@example.com');
    const before = browser.cookies.get('portcullis_session') ?? '';
    await browser.get(`${LINK}?token=${makeLink('new@example.com')}`);
    await browser.submit(LINK, { action: 'continue' });
    expect((await browser.get(`${PAGES}/account`)).text).toContain('<dd>new@example.com</dd>');
    const copy = gateway.browser();
    copy.cookies.set('portcullis_session', before);
    expect(await isSignedIn(copy)).toBe(false);
  });

  it('expires after 24 hours', async () => {
    gateway.addMember('late@example.com');
    const token = makeLink('late@example.com');
    gateway.clock.advance(24 * HOUR - 1);
    expect((await gateway.browser().get(`${LINK}?token=${token}`)).status).toBe(200);
    gateway.clock.advance(1);
    expect((await gateway.browser().get(`${LINK}?token=${token}`)).status).toBe(404);
  });

  it('is worth nothing when its member has left, or when it was never made', async () => {
    const id = gateway.addMember('left@example.com');
    const token = makeLink('left@example.com');
    removeMember(gateway.db, actor(), id, gateway.clock.now());
    for (const each of [token, generateSecret('link'), generateSecret('invitation'), '', 'x'.repeat(300)]) {
      expect((await gateway.browser().get(`${LINK}?token=${each}`)).status).toBe(404);
    }
    expect((await gateway.browser().get(LINK)).status).toBe(404);
  });
});

describe('an invitation', () => {
  it('is accepted in the browser with a name and a password, once', async () => {
    const { token } = invite('ada@example.com');
    const browser = gateway.browser();
    const page = await browser.get(`${INVITATION}?token=${token}`);
    expect(page.text).toContain('<strong>Default</strong>, as <strong>admin</strong>');
    const answer = await browser.submit(INVITATION, { ...CHOSEN, name: 'Ada' });
    expect([answer.status, answer.headers.location]).toEqual([303, `${PAGES}/account`]);
    const { text } = await browser.get(`${PAGES}/account`);
    expect(text).toMatch(/<dd>Ada<\/dd>[\s\S]*<dd>ada@example.com<\/dd>[\s\S]*<dd>admin<\/dd>/);
    expect(gateway.audited()).toEqual(['invitation.accept', 'member.create', 'member.set_password', 'session.create']);
    expect((await signIn(gateway.browser(), 'ada@example.com', CHOSEN.password)).status).toBe(303);
    expect((await gateway.browser().get(`${INVITATION}?token=${token}`)).status).toBe(404);
  });

  it('is not accepted by being looked at, nor with a password that is refused', async () => {
    const { token } = invite('careful@example.com');
    const browser = gateway.browser();
    await browser.get(`${INVITATION}?token=${token}`);
    const refused = await browser.submit(INVITATION, { password: 'short', again: 'short', name: 'Careful' });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('value="Careful"')]);
    const long = await browser.submit(INVITATION, { ...CHOSEN, name: 'x'.repeat(257) });
    expect([long.status, long.text]).toEqual([400, expect.stringContaining('Use at most 256 characters.')]);
    expect(gateway.audited()).toEqual([]);
    expect((await browser.submit(INVITATION, { ...CHOSEN, name: '  ' })).status).toBe(303);
  });

  it('that has expired, was revoked or was never made is not shown', async () => {
    const { id, token } = invite('revoked@example.com');
    revokeInvitation(gateway.db, actor(), id, gateway.clock.now());
    const late = invite('late-invitation@example.com').token;
    gateway.clock.advance(7 * 24 * HOUR);
    const statuses = await Promise.all(
      [token, late, generateSecret('invitation'), PASSWORD].map(
        async (each) => (await gateway.browser().get(`${INVITATION}?${new URLSearchParams({ token: each })}`)).status,
      ),
    );
    expect(statuses).toEqual([404, 400, 404, 404]);
  });
});
