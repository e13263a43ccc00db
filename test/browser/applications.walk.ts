// How a member lets applications act for them by OAuth, as they see it in a browser.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { Application, postForm, signedIn, tokensOf } from '../http/oauth/application.ts';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { rpc } from '../support/mcp.ts';
import { launchChromium } from './chromium.ts';
import { Walker } from './walker.ts';

const APPLICATIONS = '/oauth/interaction/applications';

let browser: Browser;
let gateway: TestGateway;
let walker: Walker;
let application: Application;
/** Where the application waits for the browser. */
let callback: string;
let listener: Server;

beforeAll(async () => {
  browser = await launchChromium();
});

beforeEach(async () => {
  listener = createServer((_, res) =>
    res.end('<!doctype html><link rel="icon" href="data:,"><h1>Connected</h1>'),
  ).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  callback = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/callback`;
  gateway = await startGateway();
  walker = await Walker.start(browser, gateway.origin);
  await walker.takeCookies(signedIn(gateway));
  application = new Application(gateway);
  await application.register({ client_name: 'Editor', redirect_uris: [callback] });
});

afterEach(async () => {
  await walker.close();
  await gateway.close();
  listener.close();
});

afterAll(() => browser.close());

/** What the browser brings back to the application. */
const broughtBack = (): URLSearchParams => new URL(walker.page.url()).searchParams;

const statusOf = async (token: string): Promise<number> => (await rpc(gateway, 'tools/list', {}, { token })).status;

it('a member allows an application a new key with a spend limit, and ends the application later', async () => {
  await walker.goto(application.authorizePath({ redirect_uri: callback }));
  await walker.see('consent', 'Connect Editor');
  expect(await walker.text()).toContain(new URL(callback).host);
  await walker.choose({ Key: 'Create a new key for this application' });
  await walker.fill({ 'Spend limit in USD': 'much' });
  await walker.press('Allow');
  await walker.see('consent-refused', 'Connect Editor', 400);
  await walker.fill({ 'Spend limit in USD': '2.50' });
  await walker.choose({ 'Limit period': 'per day', 'Key lifetime': '30 days' });
  await walker.press('Allow');
  expect(await walker.page.getByRole('heading').innerText()).toBe('Connected');

  const code = broughtBack().get('code') ?? '';
  const { body } = await application.token({ grant_type: 'authorization_code', code, redirect_uri: callback });
  const { access_token } = tokensOf(body);
  expect(await statusOf(access_token)).toBe(200);
  const key = gateway.db.connection
    .prepare(
      "SELECT periodUsageLimit, periodUsageDurationValue, periodUsageDurationUnit, expiresAt FROM keys WHERE description = 'Editor (OAuth)'",
    )
    .get();
  expect(key).toEqual({
    periodUsageLimit: 2.5e12,
    periodUsageDurationValue: 1,
    periodUsageDurationUnit: 'day',
    expiresAt: expect.closeTo(Date.now() + 30 * 86_400_000, -6),
  });

  await walker.goto(APPLICATIONS);
  await walker.see('applications', 'Your applications');
  await walker.press('Revoke Editor');
  expect(await walker.text()).toContain('You have no applications yet.');
  expect(await statusOf(access_token)).toBe(401);
});

it('a member refuses, and the application hears of it', async () => {
  await walker.goto(application.authorizePath({ redirect_uri: callback }));
  await walker.press('Refuse');
  expect(Object.fromEntries(broughtBack())).toMatchObject({ error: 'access_denied', state: 'the state' });
  await walker.goto(APPLICATIONS);
  expect(await walker.text()).toContain('You have no applications yet.');
});

it('a request that cannot be answered is explained, and goes to nobody', async () => {
  await walker.goto(application.authorizePath({ redirect_uri: 'https://elsewhere.example/' }));
  await walker.see('oauth-fault', 'This did not work', 400);
});

it('a member creates a service application, and sees its secret once', async () => {
  await walker.goto(APPLICATIONS);
  await walker.fill({ Name: 'Nightly job' });
  await walker.press('Create application');
  await walker.see('application-secret', 'Nightly job');
  const [id = '', secret = ''] = await walker.page.locator('dd').allInnerTexts();
  const fields = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
  const { body } = await postForm(gateway.origin, '/oauth/token', fields);
  expect(await statusOf(tokensOf(body).access_token)).toBe(200);

  await walker.goto(APPLICATIONS);
  await walker.see('applications-own', 'Your applications');
  expect(await walker.page.content()).not.toContain(secret);
});
