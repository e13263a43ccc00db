// OAuth under PUBLIC_URL, behind a proxy that ends TLS: every address for a client or a browser leads to the public origin.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setPassword } from '../../../src/admin/sign-in/sign-in.ts';
import { hashPassword } from '../../../src/domain/identity.ts';
import { Browser } from '../../support/browser.ts';
import { callTool, rpc, toolResultOf } from '../../support/mcp.ts';
import { type Answer, send } from '../../support/request.ts';
import { startTlsGateway, type TlsGateway } from '../../support/tls-gateway.ts';
import { Application, getJson, newKey, REDIRECT, tokensOf } from './application.ts';

const PASSWORD = 'correct horse battery';
const hash = await hashPassword(PASSWORD);

const MODEL = { id: 'sandbox-paid' };

/** Of the gateway's pages, and of the authorization server. */
const COOKIES = [
  '__Host-portcullis_form',
  '__Host-portcullis_session',
  'portcullis_consent',
  'portcullis_resume',
  'portcullis_oauth',
];

describe.each([
  ['keeps the name by which it was called', { rewritesHost: false }],
  ["sends the gateway's own address as Host", { rewritesHost: true }],
])('behind a proxy that %s', (_, proxy) => {
  let gateway: TlsGateway;
  let email: string;

  beforeAll(async () => {
    gateway = await startTlsGateway('localhost', proxy);
    const { firstRun, memberId } = gateway;
    const owner = { kind: 'person', organizationId: firstRun.organizationId, memberId } as const;
    email = setPassword(gateway.db, owner, hash, Date.now()).email;
  });

  afterAll(() => gateway.close());

  it('discovery names the public origin, and never the inner address', async () => {
    const refused = await send(gateway.origin, { method: 'POST', path: '/mcp', body: '{}' });
    const place = `${gateway.origin}/.well-known/oauth-protected-resource/mcp`;
    expect([refused.status, refused.headers['www-authenticate']]).toEqual([
      401,
      `Bearer resource_metadata="${place}", scope="mcp"`,
    ]);
    const documents = await Promise.all(
      [
        place,
        `${gateway.origin}/.well-known/oauth-protected-resource`,
        `${gateway.origin}/.well-known/oauth-authorization-server`,
        `${gateway.origin}/.well-known/openid-configuration`,
      ].map(async (url) => (await getJson(url)).body),
    );
    const [resource, , server] = documents;
    expect(resource).toMatchObject({ resource: `${gateway.origin}/mcp`, authorization_servers: [gateway.origin] });
    expect(server).toMatchObject({ issuer: gateway.origin, token_endpoint: `${gateway.origin}/oauth/token` });
    const named = JSON.stringify(documents).matchAll(/https?:\/\/[^/"]+/g);
    expect(new Set([...named].map(([origin]) => origin))).toEqual(new Set([gateway.origin]));
  });

  it('a member signs in, allows an application a key, and it works with its tokens, which it renews', async () => {
    const browser = new Browser(gateway.origin);
    const cookies: string[] = [];
    /** Where an answer leads; its cookies are noted. */
    const led = ({ headers }: Answer): string => {
      cookies.push(...browser.setCookies);
      return headers.location ?? '';
    };
    const application = new Application(gateway, browser);
    await application.register();

    const consent = led(await browser.get(application.authorizePath()));
    const signIn = led(await browser.get(consent));
    expect(signIn).toBe(`/oauth/interaction/sign-in?${new URLSearchParams({ next: consent })}`);
    led(await browser.get(signIn));
    const next = led(await browser.submit('/oauth/interaction/sign-in', { email, password: PASSWORD }));
    expect(next).toBe(consent);
    const page = await browser.get(consent);
    expect(page.text).toContain(email);
    const resume = new URL(led(await browser.submit(consent, { ...newKey(gateway), answer: 'allow' })));
    expect(resume.origin).toBe(gateway.origin);
    const back = new URL(led(await browser.get(resume.pathname)));
    expect([`${back.origin}${back.pathname}`, back.searchParams.get('iss')]).toEqual([REDIRECT, gateway.origin]);
    const names = cookies.map((cookie) => cookie.split('=')[0]).filter((name) => !name?.endsWith('.sig'));
    expect(new Set(names)).toEqual(new Set(COOKIES));
    expect(cookies.filter((cookie) => !(/; secure(;|$)/i.test(cookie) && /; httponly(;|$)/i.test(cookie)))).toEqual([]);

    const first = await application.token({
      grant_type: 'authorization_code',
      code: back.searchParams.get('code') ?? '',
      redirect_uri: REDIRECT,
    });
    const { access_token, refresh_token: old = '' } = tokensOf(first.body);
    expect((await rpc(gateway, 'tools/list', {}, { token: access_token })).status).toBe(200);
    const renewed = await application.token({ grant_type: 'refresh_token', refresh_token: old });
    const { access_token: token } = tokensOf(renewed.body);
    const chat = { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] };
    const { content } = toolResultOf(await callTool(gateway, 'chat', chat, { token }));
    expect(content).toMatchObject([{ type: 'text', text: 'You said: Hello' }]);
  });

  it('tokens are for the public name alone: none is given for the inner address', async () => {
    const application = new Application(gateway);
    await application.register();
    for (const resource of [`${gateway.inner}/mcp`, gateway.origin.replace('https:', 'http:')]) {
      const { path } = await application.askConsent({ resource });
      expect(new URL(path).searchParams.get('error')).toBe('invalid_target');
    }
    const { refresh_token = '' } = await application.connect();
    const { status, body } = await application.token({
      grant_type: 'refresh_token',
      refresh_token,
      resource: `${gateway.inner}/mcp`,
    });
    expect([status, body.error]).toEqual([400, 'invalid_target']);
  });

  it('models are listed with a key', async () => {
    const headers = { authorization: `Bearer ${gateway.firstRun.gatewayKey}` };
    const { status, body } = await getJson(`${gateway.origin}/v1/models`, headers);
    expect([status, body]).toMatchObject([200, { data: expect.arrayContaining([expect.objectContaining(MODEL)]) }]);
  });
});
