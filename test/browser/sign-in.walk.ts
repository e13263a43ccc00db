// How members sign in, as a person sees it in a browser.
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { createInvitation } from '../../src/admin/tenants/invitations.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { launchChromium } from './chromium.ts';
import { Walker } from './walker.ts';

const PASSWORD = 'correct horse battery';
const SIGN_IN = '/oauth/interaction/sign-in';

let browser: Browser;
let gateway: TestGateway;
let walker: Walker;

beforeAll(async () => {
  browser = await launchChromium();
});

beforeEach(async () => {
  gateway = await startGateway();
  // Browsers have passkeys for names, not for addresses.
  walker = await Walker.start(browser, gateway.origin.replace('127.0.0.1', 'localhost'));
});

afterEach(async () => {
  await walker.close();
  await gateway.close();
});

afterAll(() => browser.close());

const firstLink = (): string => `/oauth/interaction/link?token=${gateway.firstRun.signInToken}`;

/** By the link of the first start. */
async function signInFirst(): Promise<void> {
  await walker.goto(firstLink());
  await walker.fill({ 'New password': PASSWORD, 'Confirm new password': PASSWORD });
  await walker.press('Set password and sign in');
}

async function signIn(password: string): Promise<void> {
  await walker.goto(SIGN_IN);
  await walker.fill({ 'E-mail': gateway.firstRun.ownerEmail, Password: password });
  await walker.press('Sign in');
}

it('the owner signs in by the link of the first start, chooses a password, signs out, and signs in by the password', async () => {
  await walker.goto(firstLink());
  await walker.see('first-sign-in', 'Welcome');
  await walker.fill({ 'New password': 'short', 'Confirm new password': 'other' });
  await walker.press('Set password and sign in');
  await walker.see('first-sign-in-refused', 'Welcome', 400);
  await walker.fill({ 'New password': PASSWORD, 'Confirm new password': PASSWORD });
  await walker.press('Set password and sign in');
  await walker.see('account', 'Your account');
  expect(await walker.text()).toContain(gateway.firstRun.ownerEmail);

  await walker.press('Sign out');
  await walker.see('sign-in', 'Sign in');
  await signIn(PASSWORD);
  await walker.see('account-again', 'Your account');
});

it('a link that was used says so, and leads to sign-in', async () => {
  await signInFirst();
  await walker.press('Sign out');
  await walker.goto(firstLink());
  await walker.see('used-link', 'This link no longer works', 404);
  await walker.page.getByRole('link', { name: 'Go to sign-in' }).click();
  await walker.see('sign-in-from-used-link', 'Sign in');
});

it('a wrong password is refused, the eleventh locks the account, and then the right one is refused too', async () => {
  await signInFirst();
  await walker.press('Sign out');
  await signIn('wrong');
  await walker.see('wrong-password', 'Sign in', 401);
  for (let attempt = 2; attempt <= 10; attempt += 1) await signIn('wrong');
  await signIn(PASSWORD);
  await walker.see('locked-out', 'Sign in', 429);
  expect(await walker.text()).toContain('Try again in at most 15 minutes');
});

it('a member adds a passkey, and signs in by it without a password', async () => {
  const debug = await walker.page.context().newCDPSession(walker.page);
  await debug.send('WebAuthn.enable');
  await debug.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
    },
  });
  await signInFirst();
  await walker.fill({ 'Name of the new passkey': 'My laptop' });
  await walker.press('Add a passkey');
  await walker.see('account-with-passkey', 'Your account');
  expect(await walker.text()).toContain('My laptop');

  await walker.press('Sign out');
  await walker.press('Sign in with a passkey');
  await walker.see('account-by-passkey', 'Your account');
});

it('an invitation is accepted in the browser', async () => {
  const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
  const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
  const invited = { email: 'ada@example.com', role: 'developer' };
  const { token } = createInvitation(gateway.db, actor, invited, { now: Date.now(), pepper }).invitation;
  await walker.goto(`/oauth/interaction/invitation?token=${token}`);
  await walker.see('invitation', 'You are invited');
  await walker.fill({ 'Your name': 'Ada', 'New password': PASSWORD, 'Confirm new password': PASSWORD });
  await walker.press('Accept and sign in');
  await walker.see('account-of-invited', 'Your account');
  expect(await walker.text()).toContain('Ada');
});

it('who is not signed in is led to sign-in, and from there to where they were going', async () => {
  await signInFirst();
  await walker.press('Sign out');
  await walker.goto('/oauth/interaction/applications');
  await walker.fill({ 'E-mail': gateway.firstRun.ownerEmail, Password: PASSWORD });
  await walker.press('Sign in');
  await walker.see('applications-none', 'Your applications');
});
