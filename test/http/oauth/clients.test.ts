// Applications that register themselves, and those that act by themselves.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addKey, disable, startGateway, type TestGateway } from '../../support/gateway.ts';
import { rpc } from '../../support/mcp.ts';
import { Application, postForm, REDIRECT, type Reply, register } from './application.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const MACHINE = { grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };

const withKey = (token = gateway.firstRun.gatewayKey) => ({ authorization: `Bearer ${token}` });

const basic = ({ body }: Reply) => ({
  authorization: `Basic ${Buffer.from(`${body.client_id}:${body.client_secret}`).toString('base64')}`,
});

const ownToken = (client: Reply, fields: Readonly<Record<string, string>> = {}) =>
  postForm(gateway.origin, '/oauth/token', { grant_type: 'client_credentials', ...fields }, basic(client));

const statusOf = async (token: unknown): Promise<number> =>
  (await rpc(gateway, 'tools/list', {}, { token: String(token) })).status;

const SCHEMES =
  'redirect_uris must use https, http on loopback (localhost, 127.0.0.1, [::1]), or a scheme in reverse-domain form such as com.example.app:/callback.';

describe('registration', () => {
  it.each([
    ['http://localhost:1234/callback', 'native'],
    ['http://[::1]:1234/callback', 'native'],
    ['com.example.editor://oauth/callback', 'native'],
    ['https://vscode.dev/redirect', 'web'],
  ])('knows by %s that the application is %s', async (uri, type) => {
    const { status, body } = await register(gateway.origin, { redirect_uris: [uri] });
    expect([status, body.application_type, body.redirect_uris]).toEqual([201, type, [uri]]);
  });

  it('ignores scopes and fields that mean nothing here', async () => {
    const { status, body } = await register(gateway.origin, {
      redirect_uris: [REDIRECT],
      scope: 'openid everything',
      client_id: 'mine',
      jwks_uri: 'http://169.254.169.254/latest/meta-data',
      sector_identifier_uri: 'https://127.0.0.1/',
      software_id: 'x',
    });
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({ scope: 'mcp', token_endpoint_auth_method: 'client_secret_basic' }),
    ]);
    expect(body.client_id).not.toBe('mine');
    expect(Object.keys(body)).not.toContain('jwks_uri');
    expect(Object.keys(body)).not.toContain('sector_identifier_uri');
  });

  it.each([
    ['http://app.example/callback', SCHEMES],
    ['http://127.0.0.1.app.example/callback', SCHEMES],
    ['http://127.0.0.1:1234@app.example/callback', 'redirect_uris must not hold a user name or a password.'],
    ['https://user:password@app.example/callback', 'redirect_uris must not hold a user name or a password.'],
  ])('refuses to send codes to %s', async (uri, error_description) => {
    const { status, body } = await register(gateway.origin, { redirect_uris: [REDIRECT, uri] });
    expect([status, body]).toEqual([400, { error: 'invalid_client_metadata', error_description }]);
  });

  it('gives no secret to who wants none', async () => {
    const { body } = await register(gateway.origin, { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'none' });
    expect(body.client_secret).toBeUndefined();
  });

  it.each([
    ['javascript:alert(1)'],
    ['data:text/html,x'],
    ['not an address'],
    ['http://elsewhere.example/callback', 'com.example.app:/x'],
  ])('refuses the address %s', async (...uris) => {
    const { status, body } = await register(gateway.origin, { redirect_uris: uris });
    expect([status, body.error]).toEqual([400, expect.stringMatching(/^invalid_(redirect_uri|client_metadata)$/)]);
  });

  it.each([
    ['21 addresses', { redirect_uris: Array.from({ length: 21 }, (_, at) => `https://a.example/${at}`) }],
    ['an address of 3,000 characters', { redirect_uris: [`https://a.example/${'x'.repeat(3000)}`] }],
    ['a name of 101 characters', { redirect_uris: [REDIRECT], client_name: 'x'.repeat(101) }],
    ['much of anything else', { redirect_uris: [REDIRECT], contacts: ['x'.repeat(50_000)] }],
    ['a list', []],
  ])('refuses %s', async (_, metadata) => {
    const { status, body } = await register(gateway.origin, metadata);
    expect([status, body.error]).toEqual([400, 'invalid_client_metadata']);
  });

  it('refuses what is no JSON, and too much of it', async () => {
    const headers = { 'content-type': 'application/json' };
    const sent = (body: string) => fetch(`${gateway.origin}/oauth/register`, { method: 'POST', body, headers });
    const statuses = [await sent('{'), await sent(JSON.stringify({ a: 'x'.repeat(70_000) }))].map(
      ({ status }) => status,
    );
    expect(statuses).toEqual([400, 413]);
  });

  it('can be called by web pages', async () => {
    const { headers } = await register(gateway.origin, { redirect_uris: [REDIRECT] });
    expect(headers.get('access-control-allow-origin')).toBe('*');
  });

  it('any port of loopback will do later, no other host or path', async () => {
    const application = new Application(gateway);
    await application.register();
    const asked = async (uri: string) => (await application.askConsent({ redirect_uri: uri })).page.status;
    expect([
      await asked(REDIRECT.replace('33418', '44444')),
      await asked(REDIRECT.replace('127.0.0.1', 'localhost')),
      await asked(`${REDIRECT}/other`),
    ]).toEqual([200, 400, 400]);
  });
});

describe('web pages of every origin', () => {
  it.each([
    ['/.well-known/oauth-protected-resource/mcp', 'GET'],
    ['/.well-known/oauth-authorization-server', 'GET'],
    ['/oauth/token', 'POST'],
    ['/oauth/revoke', 'POST'],
    ['/oauth/register', 'POST'],
  ])('may call %s by %s, whatever the OPTIONS request asks', async (path, methods) => {
    const preflight = { origin: 'https://inspector.example', 'access-control-request-method': 'POST' };
    const answers = [preflight, {}].map(async (headers) => {
      const answer = await fetch(gateway.origin + path, { method: 'OPTIONS', headers });
      return [
        answer.status,
        ...['origin', 'methods'].map((name) => answer.headers.get(`access-control-allow-${name}`)),
      ];
    });
    expect(await Promise.all(answers)).toEqual([
      [204, '*', methods],
      [204, '*', methods],
    ]);
  });
});

describe('an application that acts by itself', () => {
  it('is one of at most 200 of a member', async () => {
    const { connection } = gateway.db;
    const { organizationId } = gateway.firstRun;
    const { id: keyId } = await addKey(gateway, {});
    connection.exec(`
      WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 200)
      INSERT INTO oauth_grants (id, organizationId, memberId, keyId, clientId, clientName, createdAt)
      SELECT 'many-' || at, '${organizationId}', '${gateway.memberId}', '${keyId}', 'many-' || at, 'Many', 0 FROM n`);
    const refused = await register(gateway.origin, MACHINE, withKey());
    connection.exec("DELETE FROM oauth_grants WHERE id LIKE 'many-%'");
    const accepted = await register(gateway.origin, MACHINE, withKey());
    expect([refused.status, refused.body, accepted.status]).toEqual([
      400,
      {
        error: 'invalid_client_metadata',
        error_description: 'You have let 200 applications act for you. End one of them first.',
      },
      201,
    ]);
  });

  it('acts with the gateway key with which it was registered', async () => {
    const client = await register(gateway.origin, MACHINE, withKey());
    const { status, body } = await ownToken(client);
    expect([status, body]).toEqual([
      200,
      { access_token: expect.any(String), expires_in: 3600, scope: 'mcp', token_type: 'Bearer' },
    ]);
    expect(await statusOf(body.access_token)).toBe(200);
  });

  it('may send its secret in the body', async () => {
    const client = await register(
      gateway.origin,
      { ...MACHINE, token_endpoint_auth_method: 'client_secret_post' },
      withKey(),
    );
    const { client_id: id, client_secret: secret } = client.body;
    const { status } = await postForm(gateway.origin, '/oauth/token', {
      grant_type: 'client_credentials',
      client_id: String(id),
      client_secret: String(secret),
    });
    expect(status).toBe(200);
  });

  it('gets nothing with a wrong secret', async () => {
    const client = await register(gateway.origin, MACHINE, withKey());
    const { status, body } = await ownToken({ ...client, body: { ...client.body, client_secret: 'wrong' } });
    expect([status, body.error]).toEqual([401, 'invalid_client']);
  });

  it('that was registered without a key gets nothing', async () => {
    const { status, body } = await ownToken(await register(gateway.origin, MACHINE));
    expect([status, body.error]).toEqual([400, 'unauthorized_client']);
  });

  it('is not registered with a key that may not be used', async () => {
    const { id, token } = addKey(gateway);
    disable(gateway, id);
    const { status, body } = await register(gateway.origin, MACHINE, withKey(token));
    expect([status, body.error]).toEqual([401, 'invalid_token']);
  });

  it('that connects by code gets no token of its own', async () => {
    const { status, body } = await ownToken(await register(gateway.origin, { redirect_uris: [REDIRECT] }, withKey()));
    expect([status, body.error]).toEqual([400, 'invalid_request']);
  });

  it('is for this endpoint alone', async () => {
    const client = await register(gateway.origin, MACHINE, withKey());
    const { status, body } = await ownToken(client, { resource: 'https://elsewhere.example/mcp' });
    expect([status, body.error]).toEqual([400, 'invalid_target']);
  });

  it('ends with its key, on the next request', async () => {
    const { id, token } = addKey(gateway);
    const client = await register(gateway.origin, MACHINE, withKey(token));
    const { body } = await ownToken(client);
    expect(await statusOf(body.access_token)).toBe(200);
    disable(gateway, id);
    expect(await statusOf(body.access_token)).toBe(401);
  });
});

it('what has expired is cleared away as the rest is written', async () => {
  const { connection } = gateway.db;
  connection.exec(`
    WITH RECURSIVE n (at) AS (SELECT 1 UNION ALL SELECT at + 1 FROM n WHERE at < 25)
    INSERT INTO oauth_items (model, id, payloadJson, createdAt, expiresAt)
    SELECT 'AccessToken', 'old-' || at, '{}', 0, 1 FROM n`);
  const left = () =>
    connection.prepare<[], { count: number }>("SELECT count(*) AS count FROM oauth_items WHERE id LIKE 'old-%'").get()
      ?.count;
  for (const rest of [15, 5, 0]) {
    await register(gateway.origin, { redirect_uris: [REDIRECT] });
    expect(left()).toBe(rest);
  }
});

it('errors of the endpoints that programs call are as OAuth has them, whatever type is named: wrong, and asked too often', async () => {
  const ask = () => postForm(gateway.origin, '/oauth/token', {}, { accept: 'text/html' });
  const wrong = await ask();
  let refused = wrong;
  for (let sent = 0; refused.status !== 429 && sent < 200; sent += 1) refused = await ask();
  expect([wrong, refused].map(({ status, body }) => [status, body])).toEqual([
    [400, { error: 'invalid_request', error_description: expect.any(String) }],
    [429, { error: 'temporarily_unavailable', error_description: expect.any(String) }],
  ]);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
});
