// The threat: anyone may register an application, so that a stranger fills the room for everyone, or registers one that harms who allows
// it. The defence: each address and each key has a share of the room, and metadata is checked for its types, schemes and hosts before
// anything else sees it.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Application, REDIRECT, type Reply, register } from '../http/oauth/application.ts';
import { alertsOf } from '../support/browser.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway({ TRUSTED_PROXIES: '127.0.0.1/32' });
});
afterAll(() => gateway.close());

const from = (address: string, headers: Readonly<Record<string, string>> = {}) =>
  register(gateway.origin, { redirect_uris: [REDIRECT] }, { 'x-forwarded-for': address, ...headers });

const MINUTE = 60_000;

describe('the room for applications that nobody has allowed yet', () => {
  afterEach(() => {
    gateway.db.connection.exec("DELETE FROM oauth_items WHERE model = 'Client'");
  });

  /** So many that wait, as if they had been registered before. */
  const fill = (registrant: string, count: number, age = MINUTE): void => {
    const insert = gateway.db.connection.prepare(
      "INSERT INTO oauth_items (model, id, payloadJson, createdAt, expiresAt, registrant) VALUES ('Client', ?, '{}', ?, 9e15, ?)",
    );
    for (let at = 0; at < count; at++) insert.run(`${registrant} ${at}`, Date.now() - age - at, registrant);
  };
  const waiting = (registrant: string): unknown =>
    gateway.db.connection
      .prepare("SELECT count(*) FROM oauth_items WHERE model = 'Client' AND registrant = ?")
      .pluck()
      .get(registrant);

  it('is not closed by one stranger: others register, and so do those at the same address who show a key', async () => {
    fill('network:192.0.2.1', 100);
    const key = addKey(gateway);
    const refused = await from('192.0.2.1');
    expect([refused.status, refused.body]).toEqual([
      429,
      {
        error: 'temporarily_unavailable',
        error_description:
          '100 applications that you have registered wait for someone to allow them. Allow one, or try again in an hour.',
      },
    ]);
    expect([
      (await from('192.0.2.2')).status,
      (await from('192.0.2.1', { authorization: `Bearer ${key.token}` })).status,
    ]).toEqual([201, 201]);
  });

  it('is not closed by many strangers: the address with the most gives way', async () => {
    for (let at = 0; at < 10; at++) fill(`network:192.0.2.${at}`, at === 5 ? 100 : 99);
    fill('network:198.51.100.1', 9);
    expect((await from('198.51.100.7')).status).toBe(201);
    expect([waiting('network:192.0.2.5'), waiting('network:198.51.100.1'), waiting('network:198.51.100.7')]).toEqual([
      99, 9, 1,
    ]);
  });

  it('has a share for each key, which other keys and addresses do not touch', async () => {
    const [full, other] = [addKey(gateway), addKey(gateway)];
    fill(`key:${full.id}`, 100);
    const by = ({ token }: typeof full) => from('203.0.113.1', { authorization: `Bearer ${token}` });
    expect([(await by(full)).status, (await by(other)).status, (await from('203.0.113.1')).status]).toEqual([
      429, 201, 201,
    ]);
  });

  it('is free again after an hour, in which the oldest waits for its consent', async () => {
    fill('network:192.0.2.1', 100, 61 * MINUTE);
    expect((await from('192.0.2.1')).status).toBe(201);
    expect(waiting('network:192.0.2.1')).toBe(100);
  });

  it('is not exceeded by requests of the same moment', async () => {
    fill('network:192.0.2.9', 98);
    const answers = await Promise.all(Array.from({ length: 6 }, () => from('192.0.2.9')));
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 201, 429, 429, 429, 429]);
  });
});

/** Each from an address of its own, so that none takes from another one's rate. */
let address = 0;
const sent = (metadata: object): Promise<Reply> => {
  address += 1;
  return register(gateway.origin, metadata, { 'x-forwarded-for': `198.18.${address >> 8}.${address & 255}` });
};

const SCHEMES =
  'redirect_uris must use https, http on loopback (localhost, 127.0.0.1, [::1]), or a scheme in reverse-domain form such as com.example.app:/callback.';
const HOSTS = 'redirect_uris must name a host by letters, digits, dots, hyphens and underscores.';
const UNCLEAR = 'redirect_uris must hold addresses without spaces, backslashes and control characters.';

describe('a redirect address', () => {
  it.each([
    'https://app.example/callback',
    'https://vscode.dev/redirect',
    'https://xn--bcher-kva.example:8443/cb?a=b;c,d',
    'http://127.0.0.1:33418/callback',
    'http://localhost/',
    'http://[::1]:1234/callback',
    'com.example.app:/callback',
    'com.example.app://callback',
    'io.github.some-one.tool:/oauth',
  ])('may be %s', async (uri) => {
    const { status, body } = await sent({ redirect_uris: [uri] });
    expect([status, body.redirect_uris]).toEqual([201, [uri]]);
  });

  it.each([
    ...[
      'view-source:https://app.example/',
      'filesystem:https://app.example/x',
      'ws://app.example/',
      'wss://app.example/',
    ],
    ...[
      'ftp://app.example/',
      'intent://scan/#Intent;scheme=zxing;end',
      'file:///etc/passwd',
      'blob:https://app.example/1',
    ],
    ...[
      'javascript:alert(1)',
      'JaVaScRiPt:alert(1)',
      'data:text/html,x',
      'vbscript:x',
      'about:blank',
      'mailto:a@b.example',
    ],
    ...['tel:1', 'chrome://settings', 'ms-settings:x', 'app:/callback', 'myapp://callback', 'x-callback:/y', 'urn:x:y'],
    ...['http://app.example/', 'http://127.0.0.1.app.example/', 'http://0.0.0.0/', 'http://[::]/'],
  ])('is not %s', async (uri) => {
    const { status, body } = await sent({ redirect_uris: [REDIRECT, uri] });
    expect([status, body]).toEqual([400, { error: 'invalid_client_metadata', error_description: SCHEMES }]);
  });

  it.each([
    ['https://app.example;script-src/', HOSTS],
    ['https://a,b.example/', HOSTS],
    ["https://a'b.example/", HOSTS],
    ['https://*.example/', HOSTS],
    ['https://a&b.example/', HOSTS],
    ['https://a=b.example/', HOSTS],
    ['https://app.example\\@evil.example/', UNCLEAR],
    ['https://app.example/a b', UNCLEAR],
    ['https://app.exa\nmple/', UNCLEAR],
    [' javascript:alert(1)', UNCLEAR],
    ['java\tscript:alert(1)', UNCLEAR],
    ['https:///', 'redirect_uris must hold valid addresses.'],
    ['/callback', 'redirect_uris must hold valid addresses.'],
    ['com.example.app://user@host/', 'redirect_uris must not hold a user name or a password.'],
  ])('is not %j', async (uri, fault) => {
    const { status, body } = await sent({ redirect_uris: [uri] });
    expect([status, body]).toEqual([400, { error: 'invalid_client_metadata', error_description: fault }]);
  });

  it.each(['view-source:https://app.example/', 'https://app.example;script-src/', 'myapp://callback'])(
    'that was registered before it was refused leads nowhere: %s',
    async (uri) => {
      const application = new Application(gateway);
      await application.register();
      gateway.db.connection
        .prepare("UPDATE oauth_items SET payloadJson = json_set(payloadJson, '$.redirect_uris', json(?)) WHERE id = ?")
        .run(JSON.stringify([uri, REDIRECT]), application.clientId);
      const silent = await application.askConsent({ redirect_uri: uri, prompt: 'none' });
      const { page } = await application.askConsent({ redirect_uri: uri });
      expect([silent.page.status, page.status, page.headers.location]).toEqual([400, 400, undefined]);
      expect(alertsOf(page)).toEqual([expect.stringContaining('redirect_uri did not match')]);
      expect((await application.askConsent()).page.status).toBe(200);
    },
  );
});

describe('addresses that tell about an application', () => {
  it.each(['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'])('%s is of the web', async (name) => {
    const accepted = await sent({ redirect_uris: [REDIRECT], [name]: 'https://app.example/page' });
    const refused = ['javascript:alert(1)', 'com.example.app:/x', 'http://app.example/', 'https://a;b.example/', 'x'];
    const answers = await Promise.all(refused.map((uri) => sent({ redirect_uris: [REDIRECT], [name]: uri })));
    expect([accepted.status, accepted.body[name]]).toEqual([201, 'https://app.example/page']);
    expect(answers.map(({ status, body }) => [status, body.error])).toEqual(
      refused.map(() => [400, 'invalid_client_metadata']),
    );
  });

  it('are left out where nothing is done with them', async () => {
    const unused = [
      'post_logout_redirect_uris',
      'jwks_uri',
      'initiate_login_uri',
      'sector_identifier_uri',
      'request_uris',
    ];
    const { status, body } = await sent({
      redirect_uris: [REDIRECT],
      ...Object.fromEntries(unused.map((name) => [name, 'javascript:alert(1)'])),
    });
    expect([status, unused.filter((name) => name in body)]).toEqual([201, []]);
  });
});

/** Values that break who turns them into a text, a number or a list before looking what they are. */
const ODD: readonly [string, unknown][] = [
  ['an object with toString', { toString: 'x' }],
  ['an object with valueOf and toString', { valueOf: 1, toString: null }],
  ['an object with toJSON', { toJSON: 'x', length: 5 }],
  ['a number', 7],
  ['true', true],
  ['a list', ['x', ['y']]],
  ['a list of objects', [{ toString: 'x' }]],
  ['a deep list', JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`)],
  ['an object with __proto__', JSON.parse('{"__proto__": {"toString": "x"}}')],
];

const FIELDS = [
  ...['client_name', 'client_uri', 'contacts', 'grant_types', 'logo_uri', 'policy_uri', 'redirect_uris'],
  ...['response_types', 'token_endpoint_auth_method', 'tos_uri', 'application_type'],
];

describe.each(FIELDS)('a registration whose %s is', (field) => {
  it.each(ODD)('%s is 400, and names it', async (_, value) => {
    const { status, body } = await sent({ redirect_uris: [REDIRECT], [field]: value });
    expect([status, body]).toEqual([
      400,
      { error: 'invalid_client_metadata', error_description: expect.stringContaining(field) },
    ]);
  });

  it('null is as if it were not there', async () => {
    const other = field === 'redirect_uris' ? { grant_types: ['client_credentials'], response_types: [] } : {};
    const { status } = await sent({ redirect_uris: [REDIRECT], ...other, [field]: null });
    expect(status).toBe(201);
  });
});

it.each(['"x"', '7', 'null', '[]', '[{}]', 'true'])('a registration that is %s is 400', async (body) => {
  const answer = await fetch(`${gateway.origin}/oauth/register`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'x-forwarded-for': '198.51.100.200' },
  });
  expect(answer.status).toBe(400);
});
