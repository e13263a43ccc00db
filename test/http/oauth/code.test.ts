// Connecting an application by authorization code: discovery, registration, consent, tokens, and how each ends.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newMember, removeMember } from '../../../src/admin/tenants/members.ts';
import { newId } from '../../../src/domain/id.ts';
import { alertsOf, Browser } from '../../support/browser.ts';
import { addKey, addRule, disable, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, rpc } from '../../support/mcp.ts';
import { send } from '../../support/request.ts';
import { Application, getJson, newKey, postForm, REDIRECT, signedIn } from './application.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const chat = (token: string, model = 'sandbox-paid') =>
  callTool(gateway, 'chat', { model, messages: [{ role: 'user', content: 'Hello' }] }, { token });

const statusOf = async (token: string): Promise<number> => (await rpc(gateway, 'tools/list', {}, { token })).status;

const lastKey = () =>
  gateway.db.connection
    .prepare<
      [],
      { id: string; description: string; usageLimit: number; periodUsageDurationUnit: string; expiresAt: number }
    >(
      'SELECT id, description, usageLimit, periodUsageLimit, periodUsageDurationUnit, expiresAt FROM keys ORDER BY id DESC',
    )
    .get();

describe('an application that connects', () => {
  it('is led to the authorization server by the endpoint itself', async () => {
    const { status, headers } = await fetch(`${gateway.origin}/mcp`, { method: 'POST', body: '{}' });
    const place = `${gateway.origin}/.well-known/oauth-protected-resource/mcp`;
    expect([status, headers.get('www-authenticate')]).toEqual([
      401,
      `Bearer resource_metadata="${place}", scope="mcp"`,
    ]);
    expect((await getJson(place)).body).toEqual({
      resource: `${gateway.origin}/mcp`,
      resource_name: 'Portcullis',
      authorization_servers: [gateway.origin],
      scopes_supported: ['mcp'],
      bearer_methods_supported: ['header'],
    });
    expect((await getJson(`${gateway.origin}/.well-known/oauth-authorization-server`)).body).toMatchObject({
      issuer: gateway.origin,
      authorization_endpoint: `${gateway.origin}/oauth/authorize`,
      token_endpoint: `${gateway.origin}/oauth/token`,
      registration_endpoint: `${gateway.origin}/oauth/register`,
      revocation_endpoint: `${gateway.origin}/oauth/revoke`,
      code_challenge_methods_supported: ['S256'],
      grant_types_supported: ['authorization_code', 'refresh_token', 'client_credentials'],
      response_types_supported: ['code'],
      authorization_response_iss_parameter_supported: true,
    });
  });

  it('with a key that is refused says why, and leads nowhere', async () => {
    const { gatewayKey } = gateway.firstRun;
    const mistyped = `${gatewayKey.slice(0, -1)}${gatewayKey.endsWith('x') ? 'y' : 'x'}`;
    const headers = { authorization: `Bearer ${mistyped}` };
    const answer = await fetch(`${gateway.origin}/mcp`, { method: 'POST', body: '{}', headers });
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect(await answer.json()).toMatchObject({ error: { data: { code: 'invalid_api_key' } } });
  });

  it('with a token that is not known is led there again', async () => {
    const answer = await fetch(`${gateway.origin}/mcp`, {
      method: 'POST',
      body: '{}',
      headers: { authorization: 'Bearer no-such-token' },
    });
    const place = `${gateway.origin}/.well-known/oauth-protected-resource/mcp`;
    expect([answer.status, answer.headers.get('www-authenticate'), await answer.json()]).toMatchObject([
      401,
      `Bearer error="invalid_token", resource_metadata="${place}", scope="mcp"`,
      { error: { data: { code: 'invalid_token' } } },
    ]);
  });

  it('gets tokens with which it calls tools, and with nothing else', async () => {
    const tokens = await new Application(gateway).connect();
    expect(tokens).toEqual({
      access_token: expect.any(String),
      refresh_token: expect.any(String),
      expires_in: 3600,
      scope: 'mcp',
      token_type: 'Bearer',
    });
    expect((await chat(tokens.access_token)).text).toContain('Hello');
    const elsewhere = await fetch(`${gateway.origin}/v1/models`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    expect(elsewhere.status).toBe(401);
  });

  it('is asked for nothing that it may leave out: no scope, no resource, a final slash', async () => {
    for (const params of [{}, { scope: 'openid offline_access other' }, { resource: `${gateway.origin}/mcp/` }]) {
      const { access_token: token, scope } = await new Application(gateway).connect({}, params);
      expect([scope, await statusOf(token)]).toEqual(['mcp', 200]);
    }
  });

  it('is refused for another resource, without PKCE, and with a challenge in clear', async () => {
    const application = new Application(gateway);
    await application.register();
    const refusal = async (params: Readonly<Record<string, string>>) =>
      new URL((await application.askConsent(params)).path).searchParams.get('error');
    expect(await refusal({ resource: 'https://elsewhere.example/mcp' })).toBe('invalid_target');
    expect(await refusal({ code_challenge: '' })).toBe('invalid_request');
    expect(await refusal({ code_challenge_method: 'plain' })).toBe('invalid_request');
  });

  it('that names an address of its own that was not registered gets nothing there: a page says so', async () => {
    const application = new Application(gateway);
    await application.register();
    const { page } = await application.askConsent({ redirect_uri: 'https://evil.example/callback' });
    expect([page.status, page.headers.location, alertsOf(page)]).toEqual([
      400,
      undefined,
      [
        'The application&#39;s request cannot be answered: redirect_uri did not match any of the client&#39;s registered redirect_uris.',
      ],
    ]);
  });
});

describe('consent', () => {
  it('needs a member who is signed in, and comes back after sign-in', async () => {
    const application = new Application(gateway, new Browser(gateway.origin));
    await application.register();
    const { path, page } = await application.askConsent();
    expect([page.status, page.headers.location]).toEqual([
      303,
      `/oauth/interaction/sign-in?${new URLSearchParams({ next: path })}`,
    ]);
  });

  it('names the application, where its answer goes, and who is signed in', async () => {
    const application = new Application(gateway);
    await application.register({ client_name: '<b>Evil & co</b>' });
    const { page } = await application.askConsent();
    expect(page.text).toContain('Connect &lt;b&gt;Evil &amp; co&lt;/b&gt;');
    expect(page.text).toContain('<strong>127.0.0.1:33418</strong>');
    expect(page.text).toContain(gateway.firstRun.ownerEmail);
    expect(page.headers['content-security-policy']).toContain("form-action 'self' http://127.0.0.1:33418;");
  });

  it('makes a key with a cap and an expiry for the application', async () => {
    await new Application(gateway).connect({ limit: '2.50', window: 'day', days: '30' });
    expect(lastKey()).toMatchObject({
      description: 'Test application (OAuth)',
      usageLimit: null,
      periodUsageLimit: 2_500_000_000_000,
      periodUsageDurationUnit: 'day',
      expiresAt: expect.closeTo(Date.now() + 30 * 86_400_000, -6),
    });
  });

  it('says what is wrong with the choices, and keeps them', async () => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const answered = await application.browser.submit(path, { ...newKey(gateway), limit: 'lots', answer: 'allow' });
    expect([answered.status, alertsOf(answered)]).toEqual([
      400,
      ['Enter the spend limit as an amount in USD such as 12.50, without a currency sign, at most 9000000.'],
    ]);
    expect(answered.text).toContain('value="lots"');
    const back = await application.answer(path, { ...newKey(gateway), answer: 'allow' });
    expect(back.searchParams.get('code')).toEqual(expect.any(String));
  });

  it("offers the member's own keys, however many newer ones others have", async () => {
    const { organizationId } = gateway.firstRun;
    const other = newId('mem');
    newMember(
      gateway.db,
      { id: other, organizationId, email: 'other@x.example', name: null, role: 'developer' },
      Date.now(),
    );
    const own = addKey(gateway, { description: 'Own' });
    const foreign = Array.from({ length: 100 }, () => addKey(gateway, { createdBy: other }).id);
    const application = new Application(gateway);
    await application.register();
    const { text } = (await application.askConsent()).page;
    expect(text).toContain(`<option value="${own.id}" selected>`);
    expect(foreign.filter((id) => text.includes(id))).toEqual([]);
  });

  it('is given for a key of the member that exists', async () => {
    const { id } = addKey(gateway, { description: 'mine' });
    const { access_token: token } = await new Application(gateway).connect({ key: id });
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-free'] } });
    expect((await chat(token)).text).toContain('Hello');
    expect(lastKey()?.id).toBe(id);
  });

  it("is not given for someone else's key", async () => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const answered = await application.browser.submit(path, {
      ...newKey(gateway),
      key: 'key_00000000000000000000000000000000',
      answer: 'allow',
    });
    expect(answered.status).toBe(404);
  });

  it.each([
    ['disabled', () => disable(gateway, addKey(gateway).id)],
    ['expired', () => addKey(gateway, {}, Date.now() - 1)],
  ])('is not given for a key that is %s', async (state, inactive) => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const answered = await application.browser.submit(path, {
      ...newKey(gateway),
      key: inactive().id,
      answer: 'allow',
    });
    expect([answered.status, alertsOf(answered)]).toEqual([400, [`This key is ${state}. Choose another one.`]]);
  });

  it('that is refused gives the application an error and no key', async () => {
    const application = new Application(gateway);
    await application.register();
    const before = lastKey();
    const { path } = await application.askConsent();
    const back = await application.answer(path, { ...newKey(gateway), answer: 'refuse' });
    expect([back.origin + back.pathname, back.searchParams.get('error'), back.searchParams.get('state')]).toEqual([
      REDIRECT,
      'access_denied',
      'the state',
    ]);
    expect(lastKey()).toEqual(before);
  });

  it('is asked for each time, also of who has just given it', async () => {
    const application = new Application(gateway);
    await application.connect();
    expect((await application.askConsent()).page.text).toContain('Connect Test application');
    const silent = await application.askConsent({ prompt: 'none' });
    expect(new URL(silent.path).searchParams.get('error')).toBe('consent_required');
  });

  it('of another browser is not there to be answered', async () => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const other = await signedIn(gateway).get(path);
    expect([other.status, alertsOf(other)]).toEqual([
      404,
      ['This request has expired or was already answered. Connect again from your application.'],
    ]);
  });

  it('cannot be sent from a page of another site', async () => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const sent = await application.browser.submit(
      path,
      { ...newKey(gateway), answer: 'allow' },
      { origin: 'https://evil.example' },
    );
    expect(sent.status).toBe(403);
  });
});

describe('what a token may do', () => {
  it('is what its key may do: neither list nor chat shows a model that a rule denies', async () => {
    const { access_token: token } = await new Application(gateway).connect();
    const { id } = lastKey() ?? { id: '' };
    addRule({ ...gateway, keyId: id }, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    expect((await callTool(gateway, 'list-models', { family: 'sandbox' }, { token })).text).not.toContain(
      'sandbox-paid',
    );
    expect((await chat(token)).text).toContain('denied');
  });

  it('ends with its key, on the next request', async () => {
    const { access_token: token } = await new Application(gateway).connect();
    expect(await statusOf(token)).toBe(200);
    disable(gateway, lastKey()?.id ?? '');
    const refused = await rpc(gateway, 'tools/list', {}, { token });
    expect([refused.status, refused.text]).toEqual([401, expect.stringContaining('api_key_disabled')]);
  });

  it('ends when the application gives it back', async () => {
    const application = new Application(gateway);
    const { access_token: token } = await application.connect();
    await postForm(gateway.origin, '/oauth/revoke', { token, client_id: application.clientId });
    expect(await statusOf(token)).toBe(401);
    expect(
      gateway.db.connection
        .prepare('SELECT action, actorKind, actorId FROM audit WHERE targetType = ? ORDER BY seq DESC LIMIT 1')
        .get('oauth_grant'),
    ).toEqual({ action: 'oauth_grant.delete', actorKind: 'job', actorId: 'oauth' });
  });

  it('is not ended by another application', async () => {
    const { access_token: token } = await new Application(gateway).connect();
    const other = new Application(gateway);
    await other.register();
    await postForm(gateway.origin, '/oauth/revoke', { token, client_id: other.clientId });
    expect(await statusOf(token)).toBe(200);
  });

  it('is for the name by which the application called', async () => {
    const { access_token: token } = await new Application(gateway).connect();
    const local = gateway.origin.replace('127.0.0.1', 'localhost');
    const answer = await fetch(`${local}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    });
    expect(answer.status).toBe(401);
  });
});

describe('a refresh token', () => {
  it('gives new tokens once; who uses it twice ends all of them', async () => {
    const application = new Application(gateway);
    const first = await application.connect();
    const refresh = (token: string | undefined) =>
      application.token({ grant_type: 'refresh_token', refresh_token: token ?? '', scope: 'mcp offline_access' });
    const { body } = await refresh(first.refresh_token);
    expect(body).toMatchObject({ access_token: expect.any(String), refresh_token: expect.any(String), scope: 'mcp' });
    const second = String(body.access_token);
    expect(await statusOf(second)).toBe(200);
    expect(await refresh(first.refresh_token)).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect([await statusOf(second), await statusOf(first.access_token)]).toEqual([401, 401]);
    expect(await refresh(String(body.refresh_token))).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
  });
});

describe('a code', () => {
  it('is good once: who uses it twice ends what it gave', async () => {
    const application = new Application(gateway);
    await application.register();
    const { path } = await application.askConsent();
    const back = await application.answer(path, { ...newKey(gateway), answer: 'allow' });
    const code = back.searchParams.get('code') ?? '';
    expect(back.searchParams.get('iss')).toBe(gateway.origin);
    const exchange = () => application.token({ grant_type: 'authorization_code', code, redirect_uri: REDIRECT });
    const { body } = await exchange();
    expect(await statusOf(String(body.access_token))).toBe(200);
    expect(await exchange()).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    expect(await statusOf(String(body.access_token))).toBe(401);
  });

  it('is worth nothing with another verifier, or another application', async () => {
    const application = new Application(gateway);
    await application.register();
    const other = new Application(gateway);
    await other.register();
    for (const thief of [application, other]) {
      const { path } = await application.askConsent();
      const back = await application.answer(path, { ...newKey(gateway), answer: 'allow' });
      const stolen = await thief.token({
        grant_type: 'authorization_code',
        code: back.searchParams.get('code') ?? '',
        redirect_uri: REDIRECT,
        code_verifier: 'x'.repeat(43),
      });
      expect(stolen).toMatchObject({ status: 400, body: { error: 'invalid_grant' } });
    }
  });
});

describe('the page of applications', () => {
  it('shows what acts for the member, and ends it', async () => {
    const { organizationId } = gateway.firstRun;
    const id = newId('mem');
    newMember(gateway.db, { id, organizationId, email: 'bob@example.org', name: null, role: 'developer' }, Date.now());
    const browser = signedIn(gateway, id);
    const { access_token: token } = await new Application(gateway, browser).connect();
    const { text } = await browser.get('/oauth/interaction/applications');
    expect(text).toContain('<strong>Test application</strong>');
    expect(text).toContain('key Test application (OAuth)');
    const [, grant = ''] = /name="application" value="([^"]+)"/.exec(text) ?? [];

    const others = signedIn(gateway);
    await others.get('/oauth/interaction/account');
    const { csrf } = others.hidden('/oauth/interaction/sign-out');
    const foreign = await others.post(
      '/oauth/interaction/applications/end',
      { csrf: csrf ?? '', application: grant },
      { origin: gateway.origin },
    );
    expect([foreign.status, await statusOf(token)]).toEqual([404, 200]);

    await browser.submit('/oauth/interaction/applications/end', { application: grant });
    expect(await statusOf(token)).toBe(401);
    expect((await browser.get('/oauth/interaction/applications')).text).toContain('You have no applications yet.');
  });

  it('is about one grant of an application: that of the last consent', async () => {
    const application = new Application(gateway);
    const first = await application.connect();
    const second = await application.connect();
    expect([await statusOf(first.access_token), await statusOf(second.access_token)]).toEqual([401, 200]);
  });
});

it('nothing that could be used stands in the database', async () => {
  const application = new Application(gateway);
  const { access_token: token, refresh_token: refresh = 'none' } = await application.connect();
  const rows = gateway.db.connection.prepare<[], { row: string }>(
    "SELECT model || ' ' || id || ' ' || payloadJson AS row FROM oauth_items",
  );
  const text = rows
    .all()
    .map(({ row }) => row)
    .join('\n');
  expect(text).toContain('AccessToken');
  for (const secret of [token, refresh, ...application.browser.cookies.values()]) {
    if (secret !== '') expect(text).not.toContain(secret);
  }
});

it('the host that a caller names changes no address', async () => {
  const answer = await send(gateway.origin, {
    method: 'GET',
    path: '/.well-known/oauth-authorization-server',
    headers: [
      ['x-forwarded-host', 'evil.example'],
      ['x-forwarded-proto', 'https'],
      ['forwarded', 'host=evil.example'],
    ],
  });
  expect([answer.status, answer.text]).toEqual([200, expect.not.stringContaining('evil')]);
  const port = new URL(gateway.origin).port;
  const foreign = await send(gateway.origin, {
    method: 'GET',
    path: '/.well-known/oauth-authorization-server',
    headers: [['host', `localhost:${Number(port) + 1}`]],
  });
  expect([foreign.status, foreign.text]).toEqual([404, expect.stringContaining('PUBLIC_URL')]);
});

it('a member who leaves takes their applications along', async () => {
  const { organizationId } = gateway.firstRun;
  const id = newId('mem');
  newMember(gateway.db, { id, organizationId, email: 'ann@example.org', name: null, role: 'developer' }, Date.now());
  const { access_token: token } = await new Application(gateway, signedIn(gateway, id)).connect();
  expect(await statusOf(token)).toBe(200);
  removeMember(gateway.db, { kind: 'cli', organizationId }, id, Date.now());
  expect(await statusOf(token)).toBe(401);
});
