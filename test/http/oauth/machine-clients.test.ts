// Applications that act by themselves, made by a member on the page of applications.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newMember } from '../../../src/admin/tenants/members.ts';
import { newId } from '../../../src/domain/id.ts';
import { alertsOf, Browser } from '../../support/browser.ts';
import { addKey, disable, startGateway, type TestGateway } from '../../support/gateway.ts';
import { rpc } from '../../support/mcp.ts';
import type { Answer } from '../../support/request.ts';
import { newKey, postForm, type Reply, register, signedIn } from './application.ts';

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
});

afterAll(() => gateway.close());

const APPLICATIONS = '/oauth/interaction/applications';

/** Fills in the form; by default with a new key. */
async function make(choices: Readonly<Record<string, string>> = {}, browser = signedIn(gateway)): Promise<Answer> {
  await browser.get(APPLICATIONS);
  const answer = await browser.submit(APPLICATIONS, { ...newKey(gateway), name: 'Nightly', ...choices });
  return answer.status === 303 ? browser.get(answer.headers.location ?? '') : answer;
}

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** What the page shows. */
function credentialsOn({ status, text }: Answer): Credentials {
  const shown = (term: string): string =>
    new RegExp(`<dt>${term}</dt><dd><code>([^<]+)</code>`).exec(text)?.[1] ?? `no ${term}, status ${status}`;
  return { id: shown('Client id'), secret: shown('Client secret') };
}

const ownToken = ({ id, secret }: Credentials): Promise<Reply> =>
  postForm(
    gateway.origin,
    '/oauth/token',
    { grant_type: 'client_credentials' },
    { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
  );

const listTools = (token: unknown): Promise<Answer> => rpc(gateway, 'tools/list', {}, { token: String(token) });

const rows = <Row>(query: string, ...values: string[]): Row[] =>
  gateway.db.connection.prepare<string[], Row>(query).all(...values);

/** All that such a form can leave behind. */
const made = () => [
  rows("SELECT id FROM oauth_items WHERE model = 'Client'"),
  rows('SELECT id FROM oauth_grants'),
  rows('SELECT id FROM keys'),
];

it('gets a token with the id and secret that the page shows, and calls tools with its key', async () => {
  const { id: keyId } = addKey(gateway, { description: 'for the night' });
  const page = await make({ key: keyId });
  const credentials = credentialsOn(page);
  expect([page.status, page.headers['cache-control']]).toEqual([200, 'no-store']);
  expect(page.text).toContain(`<dt>Token endpoint</dt><dd><code>${gateway.origin}/oauth/token</code>`);
  expect(page.text).toContain(
    `<code class="command">curl ${gateway.origin}/oauth/token -u "$CLIENT_ID:$CLIENT_SECRET" -d grant_type=client_credentials</code>`,
  );

  const { status, body } = await ownToken(credentials);
  expect([status, body]).toEqual([
    200,
    { access_token: expect.any(String), expires_in: 3600, scope: 'mcp', token_type: 'Bearer' },
  ]);
  const listed = await listTools(body.access_token);
  expect([listed.status, listed.text]).toEqual([200, expect.stringContaining('"list-models"')]);
  disable(gateway, keyId);
  expect((await listTools(body.access_token)).status).toBe(401);
});

it('is not made again, and its secret not shown again, when the page is loaded again', async () => {
  const browser = signedIn(gateway);
  const { secret } = credentialsOn(await make({}, browser));
  const before = made();
  const { status, headers, text } = await browser.get(`${APPLICATIONS}/new`);
  expect([status, headers.location, text.includes(secret), made()]).toEqual([303, APPLICATIONS, false, before]);
});

it('can have a new key with a cap and an expiry', async () => {
  const { body } = await ownToken(credentialsOn(await make({ limit: '2.50', window: 'day', days: '30' })));
  expect((await listTools(body.access_token)).status).toBe(200);
  const [key] = rows('SELECT * FROM keys ORDER BY id DESC');
  expect(key).toMatchObject({
    description: 'Nightly (OAuth)',
    createdBy: gateway.memberId,
    usageLimit: null,
    periodUsageLimit: 2_500_000_000_000,
    periodUsageDurationUnit: 'day',
    expiresAt: expect.closeTo(Date.now() + 30 * 86_400_000, -6),
  });
});

it('is listed, and ends there at once: its token is worth nothing, and it gets no other', async () => {
  const browser = signedIn(gateway);
  const credentials = credentialsOn(await make({ name: 'To be ended' }, browser));
  const { body } = await ownToken(credentials);
  expect((await listTools(body.access_token)).status).toBe(200);

  const { text } = await browser.get(APPLICATIONS);
  expect(text).toContain('<strong>To be ended</strong>\n<p class="hint">key To be ended (OAuth) pcl_');
  await browser.submit(`${APPLICATIONS}/end`, { application: credentials.id });
  const again = await ownToken(credentials);
  expect([(await listTools(body.access_token)).status, again.status, again.body.error]).toEqual([
    401,
    400,
    'unauthorized_client',
  ]);
  expect((await browser.get(APPLICATIONS)).text).not.toContain('<strong>To be ended</strong>');
});

it('is kept as long as it is not ended, and forgotten a day later', async () => {
  const browser = signedIn(gateway);
  const { id } = credentialsOn(await make({}, browser));
  const expiry = () =>
    rows<{ expiresAt: number | null }>("SELECT expiresAt FROM oauth_items WHERE model = 'Client' AND id = ?", id);
  expect(expiry()).toEqual([{ expiresAt: null }]);
  await browser.get(APPLICATIONS);
  await browser.submit(`${APPLICATIONS}/end`, { application: id });
  expect(expiry()).toEqual([{ expiresAt: expect.closeTo(Date.now() + 86_400_000, -5) }]);
});

it('has the audit entry of one that was registered with a key', async () => {
  const { id: keyId, token } = addKey(gateway);
  const machine = {
    client_name: 'Nightly',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
  };
  const registered = await register(gateway.origin, machine, { authorization: `Bearer ${token}` });
  const { id } = credentialsOn(await make({ key: keyId }));
  const entryOf = (target: unknown) => {
    const [entry] = rows<Record<string, unknown>>(
      'SELECT action, actorKind, actorId, memberId, targetType, targetId, beforeJson, afterJson FROM audit WHERE targetId = ?',
      String(target),
    );
    return { ...entry, afterJson: { ...JSON.parse(String(entry?.afterJson)), createdAt: '' } };
  };
  const entry = entryOf(id);
  expect(entry).toEqual({
    action: 'oauth_grant.create',
    actorKind: 'person',
    actorId: gateway.memberId,
    memberId: gateway.memberId,
    targetType: 'oauth_grant',
    targetId: id,
    beforeJson: null,
    afterJson: { id, memberId: gateway.memberId, keyId, clientId: id, clientName: 'Nightly', createdAt: '' },
  });
  const other = String(registered.body.client_id);
  expect(entryOf(other)).toEqual({
    ...entry,
    targetId: other,
    afterJson: { ...entry.afterJson, id: other, clientId: other },
  });
});

it('has a secret that is shown once, and stands nowhere in the database', async () => {
  const browser = signedIn(gateway);
  const { secret } = credentialsOn(await make({}, browser));
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect((await browser.get(APPLICATIONS)).text).not.toContain(secret);
  const tables = rows<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'");
  const all = JSON.stringify(tables.map(({ name }) => rows(`SELECT * FROM "${name}"`)));
  expect(all).toContain('client_credentials');
  expect(all).not.toContain(secret);
});

describe('is not made', () => {
  it("with someone else's key", async () => {
    const { organizationId } = gateway.firstRun;
    const id = newId('mem');
    newMember(gateway.db, { id, organizationId, email: 'bob@example.org', name: null, role: 'developer' }, Date.now());
    const before = made();
    const refused = await make({ key: gateway.keyId }, signedIn(gateway, id));
    expect([refused.status, alertsOf(refused)]).toEqual([400, ['An application can act with a key of your own only.']]);
    expect((await make({ key: 'key_00000000000000000000000000000000' })).status).toBe(404);
    expect(made()).toEqual(before);
  });

  it.each([
    ['disabled', () => disable(gateway, addKey(gateway).id)],
    ['expired', () => addKey(gateway, {}, Date.now() - 1)],
  ])('with a key that is %s', async (state, inactive) => {
    const { id } = inactive();
    const before = made();
    const refused = await make({ key: id });
    expect([refused.status, alertsOf(refused)]).toEqual([400, [`This key is ${state}. Choose another one.`]]);
    expect(made()).toEqual(before);
  });

  it.each([
    ['no name', { name: ' ' }, 'Give the application a name of at most 100 characters.'],
    ['a long name', { name: 'x'.repeat(101) }, 'Give the application a name of at most 100 characters.'],
    ['no window', { window: 'year' }, 'Choose a limit period.'],
    ['no expiry', { days: '1' }, 'Choose a key lifetime.'],
  ])('with %s; the other choices are kept', async (_, choices, fault) => {
    const before = made();
    const refused = await make({ limit: '7.25', ...choices });
    expect([refused.status, alertsOf(refused)]).toEqual([400, [fault]]);
    expect(refused.text).toContain('value="7.25"');
    expect(made()).toEqual(before);
  });

  it('by a page of another site, without the token of the form, or by who is not signed in', async () => {
    const browser = signedIn(gateway);
    await browser.get(APPLICATIONS);
    const fields = { ...newKey(gateway), name: 'Nightly' };
    const token = browser.hidden(APPLICATIONS);
    const before = made();
    const { origin } = gateway;
    const statuses = [
      (await browser.submit(APPLICATIONS, fields, { origin: 'https://evil.example' })).status,
      (await browser.post(APPLICATIONS, fields, { origin })).status,
      (await browser.post(APPLICATIONS, { ...fields, csrf: 'x' }, { origin })).status,
      (await new Browser(origin).post(APPLICATIONS, { ...fields, ...token }, { origin })).status,
    ];
    expect([statuses, made()]).toEqual([[403, 403, 403, 401], before]);
  });

  it('where OAuth is not served', async () => {
    const elsewhere = await startGateway({ PUBLIC_URL: 'http://gateway.example/below' });
    try {
      const browser = signedIn(elsewhere);
      expect((await browser.get(APPLICATIONS)).text).not.toContain('Create a service application');
      await browser.get('/oauth/interaction/account');
      const { csrf = '' } = browser.hidden('/oauth/interaction/sign-out');
      const fields = { ...newKey(elsewhere), name: 'Nightly', csrf };
      const refused = await browser.post(APPLICATIONS, fields, { origin: elsewhere.origin });
      expect([refused.status, refused.text]).toEqual([404, expect.stringContaining('OAuth needs PUBLIC_URL')]);
    } finally {
      await elsewhere.close();
    }
  });
});
