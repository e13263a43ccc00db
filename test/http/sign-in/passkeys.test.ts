// Passkeys, with an authenticator in software: added, used without an e-mail, refused in every way that matters, removed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeMember } from '../../../src/store/tenants/member-records.ts';
import { Authenticator, type Faults } from '../../support/authenticator.ts';
import type { Browser } from '../../support/browser.ts';
import type { Answer } from '../../support/request.ts';
import { isSignedIn, MINUTE, PAGES, type SignInGateway, signIn, startSignIn } from './members.ts';

let gateway: SignInGateway;
/** By its name: an address has no passkeys. */
let origin: string;
beforeAll(async () => {
  gateway = await startSignIn();
  origin = gateway.origin.replace('127.0.0.1', 'localhost');
});
afterAll(() => gateway.close());

const ADD = `${PAGES}/account/passkeys`;
const USE = `${PAGES}/sign-in/passkey`;

/** The token that the page has for its script. */
async function scriptToken(browser: Browser, page: string): Promise<string> {
  const [, csrf = ''] = /data-csrf="([^"]+)"/.exec((await browser.get(`${PAGES}/${page}`)).text) ?? [];
  return csrf;
}

async function add(browser: Browser, device: Authenticator, faults: Faults = {}, label = 'Laptop'): Promise<Answer> {
  const csrf = await scriptToken(browser, 'account');
  const { json: options } = await browser.script(`${ADD}/options`, csrf);
  return browser.script(ADD, csrf, { label, credential: device.create(options, faults) });
}

async function use(browser: Browser, device: Authenticator, faults: Faults = {}, next = ''): Promise<Answer> {
  const csrf = await scriptToken(browser, 'sign-in');
  const { json: options } = await browser.script(`${USE}/options`, csrf);
  return browser.script(USE, csrf, { next, credential: device.get(options, faults) });
}

/** A member with a passkey, and the browser in which they added it. */
async function memberWithPasskey(email: string): Promise<{ id: string; browser: Browser; device: Authenticator }> {
  const id = gateway.addMember(email);
  const browser = gateway.browser(origin);
  await signIn(browser, email);
  const device = new Authenticator(origin);
  expect((await add(browser, device)).status).toBe(200);
  gateway.audited();
  return { id, browser, device };
}

describe('a passkey', () => {
  it('is asked for with verification of the person, and to be found without an e-mail', async () => {
    gateway.addMember('options@example.com', { name: 'Olga' });
    const browser = gateway.browser(origin);
    await signIn(browser, 'options@example.com');
    const { json } = await browser.script(`${ADD}/options`, await scriptToken(browser, 'account'));
    expect(json).toMatchObject({
      rp: { id: 'localhost', name: 'Portcullis' },
      user: { name: 'options@example.com', displayName: 'Olga' },
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    });
    const visitor = gateway.browser(origin);
    const asked = await visitor.script(`${USE}/options`, await scriptToken(visitor, 'sign-in'));
    expect(asked.json).toMatchObject({ rpId: 'localhost', userVerification: 'required' });
    expect(Object(asked.json).allowCredentials ?? []).toEqual([]);
  });

  it('is added, signs in without an e-mail, and leads to where the person wanted to go', async () => {
    gateway.addMember('ada@example.com');
    const browser = gateway.browser(origin);
    await signIn(browser, 'ada@example.com');
    const device = new Authenticator(origin);
    const added = await add(browser, device, {}, ' <b>Phone</b> ');
    expect([added.status, added.json]).toEqual([200, { next: `${PAGES}/account?done=passkey` }]);
    expect((await browser.get(`${PAGES}/account`)).text).toContain('<strong>&lt;b&gt;Phone&lt;/b&gt;</strong>');
    const other = gateway.browser(origin);
    const used = await use(other, device, {}, '/oauth/interaction/abc');
    expect([used.status, used.json, await isSignedIn(other)]).toEqual([200, { next: '/oauth/interaction/abc' }, true]);
    expect((await use(gateway.browser(origin), device, {}, '//evil.example')).json).toEqual({
      next: `${PAGES}/account`,
    });
    expect(gateway.audited()).toEqual(['session.create', 'passkey.create', 'session.create', 'session.create']);
  });

  it('signs in while the e-mail is locked: nobody can be locked out by guesses', async () => {
    const { device } = await memberWithPasskey('besieged@example.com');
    const attacker = gateway.browser();
    for (let attempt = 0; attempt < 11; attempt++) await signIn(attacker, 'besieged@example.com', 'guess after guess');
    expect((await signIn(gateway.browser(), 'besieged@example.com')).status).toBe(429);
    expect((await use(gateway.browser(origin), device)).status).toBe(200);
  });

  it('that is removed is not known any more', async () => {
    const { browser, device } = await memberWithPasskey('forgetful@example.com');
    const page = await browser.get(`${PAGES}/account`);
    const [, passkey = ''] = /name="passkey" value="(pass_\w+)"/.exec(page.text) ?? [];
    expect((await browser.submit(`${ADD}/remove`, { passkey })).status).toBe(303);
    expect(gateway.audited()).toEqual(['passkey.delete']);
    const refused = await use(gateway.browser(origin), device);
    expect([refused.status, refused.json]).toMatchObject([401, { error: { code: 'passkey_refused' } }]);
  });

  it('of someone else cannot be removed', async () => {
    const { device } = await memberWithPasskey('victim@example.com');
    const { browser: rival } = await memberWithPasskey('rival@example.com');
    const passkey = gateway.db.connection
      .prepare('SELECT id FROM passkeys WHERE credentialId = ?')
      .pluck()
      .get(device.credentialId);
    await rival.get(`${PAGES}/account`);
    expect((await rival.submit(`${ADD}/remove`, { passkey: String(passkey) })).status).toBe(404);
    expect((await use(gateway.browser(origin), device)).status).toBe(200);
  });

  it('of a member who has left is refused', async () => {
    const { id, device } = await memberWithPasskey('left@example.com');
    removeMember(gateway.db, gateway.firstRun.organizationId, id, gateway.clock.now());
    expect((await use(gateway.browser(origin), device)).status).toBe(401);
  });

  it('cannot be added twice, nor by another member', async () => {
    const { browser, device } = await memberWithPasskey('first@example.com');
    const again = await add(browser, device);
    const { browser: other } = await memberWithPasskey('second@example.com');
    expect([again.status, (await add(other, device)).status]).toEqual([400, 400]);
  });
});

describe('what an authenticator says is refused', () => {
  const FAULTS: readonly (readonly [string, Faults])[] = [
    ['for another origin', { origin: 'https://evil.example' }],
    ['for another host', { rpId: 'evil.example' }],
    ['to another challenge', { challenge: Buffer.alloc(32).toString('base64url') }],
    ['without having verified the person', { withoutVerification: true }],
  ];

  it.each(FAULTS)('when a passkey is used: %s', async (what, faults) => {
    const { device } = await memberWithPasskey(`${what.replaceAll(' ', '-')}@example.com`);
    const browser = gateway.browser(origin);
    expect([(await use(browser, device, faults)).status, await isSignedIn(browser)]).toEqual([401, false]);
  });

  it.each(FAULTS)('when one is added: %s', async (what, faults) => {
    const email = `add-${what.replaceAll(' ', '-')}@example.com`;
    gateway.addMember(email);
    const browser = gateway.browser(origin);
    await signIn(browser, email);
    const device = new Authenticator(origin);
    expect((await add(browser, device, faults)).status).toBe(400);
    expect((await use(gateway.browser(origin), device)).status).toBe(401);
  });

  it('when its counter does not grow: there is a copy of it', async () => {
    const { device } = await memberWithPasskey('copied@example.com');
    expect((await use(gateway.browser(origin), device, { counter: 5 })).status).toBe(200);
    expect((await use(gateway.browser(origin), device, { counter: 5 })).status).toBe(401);
    expect((await use(gateway.browser(origin), device, { counter: 6 })).status).toBe(200);
  });

  it('when another key signed it', async () => {
    const { device } = await memberWithPasskey('signed@example.com');
    const forger = new Authenticator(origin);
    Object.defineProperty(forger, 'credentialId', { value: device.credentialId });
    expect((await use(gateway.browser(origin), forger)).status).toBe(401);
  });

  it('a second time: a challenge is taken once', async () => {
    const { device } = await memberWithPasskey('replayed@example.com');
    const browser = gateway.browser(origin);
    const csrf = await scriptToken(browser, 'sign-in');
    const { json: options } = await browser.script(`${USE}/options`, csrf);
    const other = gateway.browser(origin);
    const foreign = await scriptToken(other, 'sign-in');
    expect((await other.script(USE, foreign, { next: '', credential: device.get(options) })).status).toBe(400);
    const credential = device.get(options, { withoutVerification: true });
    expect((await browser.script(USE, csrf, { next: '', credential })).status).toBe(401);
    expect((await browser.script(USE, csrf, { next: '', credential: device.get(options) })).status).toBe(400);
  });

  it('after five minutes', async () => {
    const { device } = await memberWithPasskey('slow@example.com');
    const browser = gateway.browser(origin);
    const csrf = await scriptToken(browser, 'sign-in');
    const { json: options } = await browser.script(`${USE}/options`, csrf);
    gateway.clock.advance(5 * MINUTE);
    expect((await browser.script(USE, csrf, { next: '', credential: device.get(options) })).status).toBe(400);
  });

  it.each([
    ['no credential', { next: '' }],
    ['a credential that is a text', { next: '', credential: 'x' }],
    ['bytes that are none', { next: '', credential: { id: '=', rawId: '=', type: 'public-key', response: {} } }],
    ['a next that is no text', { next: 1, credential: {} }],
  ])('when it has the wrong form: %s', async (_, body) => {
    const browser = gateway.browser(origin);
    const csrf = await scriptToken(browser, 'sign-in');
    await browser.script(`${USE}/options`, csrf);
    expect((await browser.script(USE, csrf, body)).json).toMatchObject({ error: { code: 'invalid_request' } });
  });
});

describe('a script', () => {
  it('without the token of its page is 403', async () => {
    const browser = gateway.browser(origin);
    await browser.get(`${PAGES}/sign-in`);
    expect((await browser.script(`${USE}/options`, 'x')).json).toMatchObject({ error: { code: 'permission_denied' } });
  });

  it('that wants to add a passkey without a session is 401', async () => {
    const browser = gateway.browser(origin);
    const csrf = await scriptToken(browser, 'sign-in');
    expect((await browser.script(`${ADD}/options`, csrf)).json).toMatchObject({ error: { code: 'not_signed_in' } });
  });

  it('that sends more than 16 kB is 413', async () => {
    const browser = gateway.browser(origin);
    const csrf = await scriptToken(browser, 'sign-in');
    expect((await browser.script(USE, csrf, { next: 'x'.repeat(20_000) })).status).toBe(413);
  });
});

it('a page that was opened by a number does not offer passkeys, says why, and names where they are', async () => {
  gateway.addMember('numbered@example.com');
  const browser = gateway.browser();
  await signIn(browser, 'numbered@example.com');
  const { text } = await browser.get(`${PAGES}/account`);
  expect(text).not.toContain('data-passkey');
  expect(text).toContain(`<a href="${origin}${PAGES}/account">`);
  const { csrf = '' } = browser.hidden(`${PAGES}/sign-out`);
  expect((await browser.script(`${ADD}/options`, csrf)).status).toBe(400);
});

it('behind TLS they belong to the host of PUBLIC_URL', async () => {
  const secure = await startSignIn({ PUBLIC_URL: 'https://gateway.example' });
  try {
    const browser = secure.browser();
    const headers = { host: 'gateway.example' };
    const { text } = await browser.get(`${PAGES}/sign-in`, headers);
    const [, csrf = ''] = /data-csrf="([^"]+)"/.exec(text) ?? [];
    const { json } = await browser.post(`${USE}/options`, '', {
      ...headers,
      origin: 'https://gateway.example',
      'x-csrf-token': csrf,
    });
    expect(json).toMatchObject({ rpId: 'gateway.example' });
  } finally {
    await secure.close();
  }
});
