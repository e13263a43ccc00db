// Clients that are named by the URL of their metadata (client id metadata documents), behind a PUBLIC_URL of https. The documents
// come
// from a real TLS server on loopback, which ALLOW_PRIVATE_CLIENTS opens.
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { alertsOf } from '../../support/browser.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callTool, rpc } from '../../support/mcp.ts';
import { TLS, trustTls } from '../../support/tls-gateway.ts';
import { Application, getJson, postForm, REDIRECT, signedIn } from './application.ts';
import { Login } from './login.ts';

const DAY = 86_400_000;

/** What the server of the documents answers, by path, and which paths it was asked for. */
const answers = new Map<string, RequestListener>();
let asked: string[] = [];

async function serveDocuments(): Promise<{ readonly server: Server; readonly origin: string }> {
  const server = createServer(TLS, (request, response) => {
    asked.push(request.url ?? '');
    const answer = answers.get(request.url ?? '');
    if (answer === undefined) response.writeHead(404).end('x'.repeat(20_000));
    else answer(request, response);
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { server, origin: `https://localhost:${address.port}` };
}

let documents: Awaited<ReturnType<typeof serveDocuments>>;
/** The same, at a port that is not opened. */
let hidden: Awaited<ReturnType<typeof serveDocuments>>;
let gateway: TestGateway;
let distrust: () => void;

beforeAll(async () => {
  distrust = trustTls();
  documents = await serveDocuments();
  hidden = await serveDocuments();
  gateway = await startGateway({
    PUBLIC_URL: 'https://gateway.example',
    ALLOW_PRIVATE_CLIENTS: new URL(documents.origin).host,
    // Opens it to those that an administrator sends there, and to no one else.
    ALLOW_PRIVATE_UPSTREAMS: new URL(hidden.origin).host,
  });
});

afterAll(async () => {
  await gateway.close();
  for (const { server } of [documents, hidden]) {
    server.close();
    server.closeAllConnections();
  }
  distrust();
});

afterEach(() => {
  answers.clear();
  asked = [];
});

let count = 0;

/** A new place for a document. */
function newPlace(origin = documents.origin): { readonly place: string; readonly id: string } {
  count += 1;
  const place = `/clients/${count}.json`;
  return { place, id: origin + place };
}

const sendJson =
  (body: object, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_, response) =>
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

/** What such clients publish. */
const metadataOf = (id: string) => ({
  client_id: id,
  client_name: 'Documented',
  client_uri: 'https://app.example',
  redirect_uris: [REDIRECT],
  grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
});

/** An application that has published its metadata. */
function documented(changes: object = {}, headers: Readonly<Record<string, string>> = {}): Application {
  const { place, id } = newPlace();
  answers.set(place, sendJson({ ...metadataOf(id), ...changes }, headers));
  return new Application(gateway, signedIn(gateway), id);
}

/** What a person reads in the browser who comes from an application of this id. */
async function refusalOf(id: string): Promise<string> {
  const { page } = await new Application(gateway, signedIn(gateway), id).askConsent();
  return `${page.status} ${alertsOf(page).join(' ')}`;
}

/** Does something so many milliseconds later, by the clock of the process. */
async function later<Result>(ms: number, act: () => Promise<Result>): Promise<Result> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms });
  try {
    return await act();
  } finally {
    vi.useRealTimers();
  }
}

/** How often a document was asked for after each of these times, in milliseconds from now, at which its application came. */
async function fetchesAfter({ clientId }: Application, times: readonly number[]): Promise<number[]> {
  const counts: number[] = [];
  for (const time of times) {
    await later(time, () => new Application(gateway, signedIn(gateway), clientId).askConsent());
    counts.push(asked.length);
  }
  return counts;
}

const REFUSED = '400 The application&#39;s request cannot be answered';
const UNKNOWN = 'This application is not known here: connect it again.';

const statusOf = async (token: string): Promise<number> => (await rpc(gateway, 'tools/list', {}, { token })).status;

describe('such clients', () => {
  it('are known where PUBLIC_URL is https, and nowhere else', async () => {
    const path = '/.well-known/oauth-authorization-server';
    const { body } = await getJson(gateway.origin + path);
    expect(body).toMatchObject({ issuer: 'https://gateway.example', client_id_metadata_document_supported: true });
    expect(body.token_endpoint_auth_methods_supported).toContain('none');

    const local = await startGateway({ ALLOW_PRIVATE_CLIENTS: new URL(documents.origin).host });
    try {
      expect((await getJson(local.origin + path)).body).not.toHaveProperty('client_id_metadata_document_supported');
      const { place, id } = newPlace();
      answers.set(place, sendJson(metadataOf(id)));
      const { page } = await new Application(local, signedIn(local), id).askConsent();
      expect([page.status, alertsOf(page), asked]).toEqual([400, [UNKNOWN], []]);
    } finally {
      await local.close();
    }
  });

  it('connect without registration, call tools, and refresh', async () => {
    const application = documented();
    const tokens = await application.connect();
    const chat = { model: 'sandbox-paid', messages: [{ role: 'user', content: 'Hello' }] };
    expect((await callTool(gateway, 'chat', chat, { token: tokens.access_token })).text).toContain('You said: Hello');
    const { body } = await application.token({
      grant_type: 'refresh_token',
      refresh_token: tokens.refresh_token ?? '',
    });
    expect(body).toMatchObject({ access_token: expect.any(String), refresh_token: expect.any(String), scope: 'mcp' });
    expect(await statusOf(String(body.access_token))).toBe(200);
    const clients = gateway.db.connection.prepare("SELECT id FROM oauth_items WHERE model = 'Client'").all();
    expect(clients).toEqual([]);
  });

  it('are built with the official SDK, which finds out by itself that it need not register', async () => {
    const { place, id } = newPlace();
    answers.set(place, sendJson(metadataOf(id)));
    const login = new Login(gateway, id);
    // What the proxy does that ends TLS for the gateway.
    const throughProxy: typeof fetch = (input, init) =>
      fetch(String(input).replace('https://gateway.example', gateway.origin), init);
    const transport = () =>
      new StreamableHTTPClientTransport(new URL('https://gateway.example/mcp'), {
        authProvider: login,
        fetch: throughProxy,
      });
    const first = transport();
    await expect(new Client({ name: 'test', version: '1' }).connect(first)).rejects.toThrow('Unauthorized');
    await first.finishAuth(login.callback);
    const client = new Client({ name: 'test', version: '1' });
    await client.connect(transport());
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('chat');
    await client.close();
    expect(asked).toEqual([place]);
  });

  it('are shown with their name, where the answer goes, and the host that says so', async () => {
    const { page } = await documented({ client_name: '<b>Evil</b>' }).askConsent();
    expect(page.text).toContain('Connect &lt;b&gt;Evil&lt;/b&gt;');
    expect(page.text).toContain('You will be sent back to <strong>127.0.0.1:33418</strong>');
    expect(page.text).toContain(
      `Its name and other details come from <strong>${new URL(documents.origin).host}</strong>.`,
    );
  });

  it('are called by their host where they have no name', async () => {
    const { page } = await documented({ client_name: undefined }).askConsent();
    expect(page.text).toContain(`Connect ${new URL(documents.origin).host}`);
  });

  it('may use any port of loopback, like those that register', async () => {
    const application = documented();
    const { page } = await application.askConsent({ redirect_uri: REDIRECT.replace('33418', '44444') });
    expect(page.status).toBe(200);
  });

  it('may say nothing of how they prove themselves: they have no secret', async () => {
    const { access_token: token } = await documented({ token_endpoint_auth_method: undefined }).connect();
    expect(await statusOf(token)).toBe(200);
  });

  it('get no token of their own', async () => {
    const application = documented({ grant_types: ['authorization_code', 'client_credentials'] });
    await application.connect();
    const { status, body } = await application.token({ grant_type: 'client_credentials' });
    expect([status, body.error]).toEqual([400, 'unauthorized_client']);
  });

  it('are on the page of applications, each grant with its host, and end there at once', async () => {
    const { place, id } = newPlace();
    answers.set(place, sendJson(metadataOf(id)));
    const browser = signedIn(gateway);
    const laptop = new Application(gateway, browser, id);
    const desktop = new Application(gateway, browser, id);
    const { access_token: one } = await laptop.connect();
    const { access_token: two, refresh_token: refresh = '' } = await desktop.connect();
    expect([await statusOf(one), await statusOf(two)]).toEqual([200, 200]);

    const { text } = await browser.get('/oauth/interaction/applications');
    expect(text).toContain(`<p class="hint">${new URL(id).host} · key Documented (OAuth) pcl_`);
    // The newest is the first.
    const [, grant = ''] = /name="application" value="([^"]+)"/.exec(text) ?? [];
    await browser.submit('/oauth/interaction/applications/end', { application: grant });
    expect([await statusOf(one), await statusOf(two)]).toEqual([200, 401]);
    const again = await desktop.token({ grant_type: 'refresh_token', refresh_token: refresh });
    expect([again.status, again.body.error]).toEqual([400, 'invalid_grant']);
  });
});

describe('a metadata document', () => {
  it('is asked for once as long as its host says, but again after a day', async () => {
    const application = documented({}, { 'cache-control': 'max-age=999999999' });
    expect(await fetchesAfter(application, [0, DAY / 2, DAY + 1000])).toEqual([1, 1, 2]);
  });

  it('whose host says nothing of that is asked for again after a minute', async () => {
    expect(await fetchesAfter(documented(), [0, 50_000, 61_000])).toEqual([1, 1, 2]);
  });

  it('is asked for politely: as JSON, without a cookie or a credential', async () => {
    const { place, id } = newPlace();
    let headers: object = {};
    answers.set(place, (request, response) => {
      headers = request.headers;
      sendJson(metadataOf(id))(request, response);
    });
    await new Application(gateway, signedIn(gateway), id).askConsent();
    expect(headers).toEqual({
      host: new URL(documents.origin).host,
      connection: 'keep-alive',
      accept: 'application/json',
      'accept-encoding': 'identity',
      'user-agent': 'Portcullis',
    });
  });

  it.each<[string, RequestListener, string]>([
    ['a page', (_, response) => response.end('<!doctype html>'), '. Its metadata document is not a JSON object.'],
    ['a list', sendJson([]), '. Its metadata document is not a JSON object.'],
    [
      'a redirect',
      (_, response) => response.writeHead(302, { location: '/clients/other.json' }).end(),
      '. Its metadata document is answered with status 302.',
    ],
    [
      'a failure with a long page',
      (_, response) => response.writeHead(500).end('x'.repeat(50_000)),
      '. Its metadata document is answered with status 500.',
    ],
    ['more than 5 KiB', sendJson({ padding: 'x'.repeat(5200) }), '. Its metadata document is larger than 5120 bytes.'],
    ['no end', (_, response) => response.end('x'.repeat(1_000_000)), '. Its metadata document is too large.'],
    [
      'compressed text',
      (_, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
      '. Its metadata document is not sent as plain HTTP.',
    ],
    ['nothing', (_, response) => response.destroy(), '. Its metadata document cannot be reached at a public address.'],
    ['silence', () => {}, '. Its metadata document took too long.'],
  ])('that is %s is refused, asked for once and followed nowhere', async (_, answer, words) => {
    const { place, id } = newPlace();
    answers.set(place, answer);
    expect([await refusalOf(id), asked]).toEqual([REFUSED + words, [place]]);
  });

  it.each<[string, object, string]>([
    [
      'names another client',
      { client_id: 'https://localhost/other.json' },
      ': client_id metadata document client_id does not match the expected value.',
    ],
    [
      'has a secret',
      { client_secret: 'x' },
      ': client_id metadata document must not contain client_secret or client_secret_expires_at.',
    ],
    [
      'wants to prove itself by a secret',
      { token_endpoint_auth_method: 'client_secret_post' },
      ': client_id metadata document must not use shared-secret token endpoint authentication methods.',
    ],
    ['has no address for the answer', { redirect_uris: undefined }, ': redirect_uris is mandatory property.'],
    [
      'has an address that runs a script',
      { redirect_uris: ['javascript:alert(1)'] },
      '. Its metadata document is refused. redirect_uris must use https, http on loopback (localhost, 127.0.0.1, [::1]), or a scheme in reverse-domain form such as com.example.app:/callback.',
    ],
    [
      'has a name that is no text',
      { client_name: { toString: 'x' } },
      '. Its metadata document is refused. /client_name must be a text of at most 100 characters.',
    ],
    [
      'has a page that runs a script',
      { tos_uri: 'javascript:alert(1)' },
      '. Its metadata document is refused. tos_uri must use https, or http on loopback.',
    ],
    [
      'has a long name',
      { client_name: 'x'.repeat(101) },
      '. Its metadata document is refused. /client_name must be a text of at most 100 characters.',
    ],
  ])('that %s is refused', async (_, changes, words) => {
    expect(await refusalOf(documented(changes).clientId)).toBe(REFUSED + words);
  });

  it('that names other documents leads nowhere', async () => {
    const application = documented({
      jwks_uri: `${documents.origin}/jwks`,
      sector_identifier_uri: `${documents.origin}/sector`,
    });
    await application.connect();
    expect(asked).toEqual([new URL(application.clientId).pathname]);
  });

  it('cannot be at an address that is not public; whether something is there is not told', async () => {
    const { port } = new URL(hidden.origin);
    const ids = [
      hidden.origin,
      `https://127.0.0.1:${port}`,
      `https://[::1]:${port}`,
      'https://169.254.169.254',
      'https://10.0.0.1',
      'https://[::ffff:127.0.0.1]',
      'https://2130706433',
    ].map((origin) => newPlace(origin).id);
    const told = new Set<string>();
    for (const id of ids) told.add(await refusalOf(id));
    expect([[...told], asked]).toEqual([
      [`${REFUSED}. Its metadata document cannot be reached at a public address.`],
      [],
    ]);
  });

  it.each([
    ['http', (id: string) => id.replace('https', 'http')],
    ['a fragment', (id: string) => `${id}#x`],
    ['a user', (id: string) => id.replace('https://', 'https://app.example@')],
    ['steps up', (id: string) => id.replace('/clients/', '/clients/../')],
  ])('is not asked for by an address with %s', async (_, changed) => {
    expect([await refusalOf(changed(newPlace().id)), asked]).toEqual([`400 ${UNKNOWN}`, []]);
  });

  it('is not asked for by an address of more than 2,000 characters', async () => {
    const { id } = newPlace();
    expect([await refusalOf(id + 'x'.repeat(2000)), asked]).toEqual([
      `${REFUSED}. Its address is longer than 2000 characters.`,
      [],
    ]);
  });

  it('that goes while a person consents ends that, in words', async () => {
    const application = documented();
    const { path: consent } = await application.askConsent();
    answers.clear();
    const page = await later(61_000, () => application.browser.get(consent));
    expect(`${page.status} ${alertsOf(page).join(' ')}`).toBe(
      `${REFUSED}. Its metadata document is answered with status 404.`,
    );
  });

  it('that cannot be fetched is an error of OAuth at the token endpoint', async () => {
    const { status, body } = await postForm(gateway.origin, '/oauth/token', {
      grant_type: 'refresh_token',
      refresh_token: 'x',
      client_id: newPlace().id,
    });
    expect([status, body]).toEqual([
      400,
      { error: 'invalid_client', error_description: 'client_id metadata document fetch failed' },
    ]);
  });
});

it('an address that asks too often makes no more fetches', async () => {
  const statuses: number[] = [];
  const browser = signedIn(gateway);
  const { place, id } = newPlace();
  while (statuses.at(-1) !== 429 && statuses.length < 130) {
    const { status } = await browser.get(new Application(gateway, browser, id).authorizePath());
    statuses.push(status);
  }
  expect(new Set(statuses)).toEqual(new Set([400, 429]));
  expect(asked).toEqual(Array.from({ length: statuses.length - 1 }, () => place));
  expect((await browser.get('/oauth/authorize/way-back')).status).toBe(429);
});
