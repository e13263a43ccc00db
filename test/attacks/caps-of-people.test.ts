// Threat: a developer whose key has a spend limit makes another key, or changes one, and spends past the limit.
// Defence: a key that a developer makes has at most the limits of their most limited key, and shares them: what all of these keys
// spend together stays within the limit. `newKeyLimits` of the organization says how much a key can have instead.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import {
  changeKey,
  createKey,
  deleteKey,
  disableKey,
  enableKey,
  reactivateKey,
  rollKey,
} from '../../src/admin/keys/keys.ts';
import { createMasterKey } from '../../src/admin/keys/master-keys.ts';
import { changeBudget, getBudget } from '../../src/admin/tenants/budgets.ts';
import { newMember } from '../../src/admin/tenants/members.ts';
import { changeOrganization, getOrganization } from '../../src/admin/tenants/organizations.ts';
import { createProject } from '../../src/admin/tenants/projects.ts';
import { newId } from '../../src/domain/id.ts';
import type { KeyRecord } from '../../src/generated/types.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { updateProject } from '../../src/store/tenants/tenants.ts';
import { Application, newKey, signedIn } from '../http/oauth/application.ts';
import { chat, errorOf, hello } from '../support/chat.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../support/gateway.ts';
import { callTool } from '../support/mcp.ts';
import { addOwnModels, FLAT } from '../support/own-models.ts';
import { keySums } from '../support/rows.ts';
import { completion, json, startUpstream, type TestUpstream } from '../support/upstream.ts';

const DAY = 86_400_000;

let upstream: TestUpstream;
let gateway: TestGateway;
let cli: Actor;
let developer: string;
let masterKey: string;

beforeAll(async () => {
  upstream = await startUpstream();
  upstream.begin(json(completion('Hello')));
  gateway = await startGateway({
    ALLOW_PRIVATE_UPSTREAMS: new URL(upstream.origin).host,
    RATE_LIMIT_CHAT_PER_MINUTE: '1000000',
  });
  // Each call costs 0.01 USD, which is what it holds back.
  addOwnModels(gateway.db, gateway.firstRun, upstream.origin, gateway.config.allowPrivateUpstreams, { flat: FLAT });
  cli = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const pepper = () => loadSecrets(gateway.dataDir, { create: false }).peppers[0];

/** Another developer for each test, with a master key. */
beforeEach(() => {
  developer = newId('mem');
  const { organizationId } = gateway.firstRun;
  const email = `${developer}@example.com`;
  newMember(gateway.db, { id: developer, organizationId, email, name: null, role: 'developer' }, Date.now());
  changeOrganization(gateway.db, cli, { newKeyLimits: null }, Date.now());
  gateway.db.connection.prepare('UPDATE master_keys SET deletedAt = 1').run();
  const write = { now: Date.now(), pepper: pepper(), memberId: developer };
  masterKey = createMasterKey(gateway.db, cli, { description: 'Mine' }, write).masterKey.token ?? '';
});

const person = (): Actor => ({
  kind: 'person',
  organizationId: gateway.firstRun.organizationId,
  memberId: developer,
  role: 'developer',
});

/** A key that an owner gives the developer. */
const given = (limits: object, expiresAt: number | null = null): TestKey =>
  addKey(gateway, { createdBy: developer, description: 'Given', ...limits }, expiresAt);

interface ApiAnswer {
  readonly status: number;
  readonly body: { readonly key: KeyRecord; readonly error: { readonly message: string; readonly param: string } };
}

async function master(method: string, path: string, sent: object): Promise<ApiAnswer> {
  const answer = await fetch(`${gateway.management}/v1/master/${path}`, {
    method,
    headers: { authorization: `Bearer ${masterKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(sent),
  });
  const body: ApiAnswer['body'] = JSON.parse(await answer.text());
  return { status: answer.status, body };
}

/** The developer makes a key by the API. */
const make = (limits: object = {}): Promise<ApiAnswer> =>
  master('POST', 'keys', { projectId: gateway.firstRun.projectId, ...limits });

const tokenOf = ({ body }: ApiAnswer): string => body.key.token ?? '';

/** Calls until one is refused; how many were served, and the code of the refusal. */
async function spendAll(token: string): Promise<{ readonly served: number; readonly code: string }> {
  for (let served = 0; ; served += 1) {
    const answer = await chat(gateway, hello({ model: 'own/flat' }), { token });
    if (answer.status !== 200) return { served, code: errorOf(answer).code };
  }
}

const month = (limit: string) => ({
  periodUsageLimit: limit,
  periodUsageDurationValue: 1,
  periodUsageDurationUnit: 'month' as const,
});

const limitsOf = ({ usageLimit, periodUsageLimit, periodUsageDurationUnit, expiresAt, sharesLimitsOf }: KeyRecord) => ({
  usageLimit,
  periodUsageLimit,
  periodUsageDurationUnit,
  expiresAt,
  sharesLimitsOf,
});

describe('a developer whose key is limited', () => {
  it('spends nothing more with a new key of the page of consent, whatever it offers', async () => {
    const key = given(month('0.02'));
    expect(await spendAll(key.token)).toEqual({ served: 2, code: 'usage_limit_reached' });
    const application = new Application(gateway, signedIn(gateway, developer));
    const { access_token } = await application.connect();

    const call = { model: 'own/flat', messages: [{ role: 'user', content: 'Hello' }] };
    const { status } = await callTool(gateway, 'chat', call, { token: access_token });

    expect([status, keySums(gateway, key.id).usage]).toEqual([401, 20_000_000_000n]);
  });

  it.each([
    ['all-time', { usageLimit: '0.05' }],
    ['recurring', month('0.05')],
  ])('has one %s limit for all keys that they make', async (_, limits) => {
    const key = given(limits);
    const made = await Promise.all(Array.from({ length: 5 }, () => make()));
    const tokens = [key.token, ...made.map(tokenOf)];

    const answers = await Promise.all(
      tokens.flatMap((token) => [1, 2, 3, 4].map(() => chat(gateway, hello({ model: 'own/flat' }), { token }))),
    );

    expect(made.map(({ status }) => status)).toEqual([201, 201, 201, 201, 201]);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(keySums(gateway, key.id)).toMatchObject({ usage: 50_000_000_000n, reserved: 0n, currentPeriodReserved: 0n });
  });

  it('has it also with keys that are made while others spend', async () => {
    const key = given({ usageLimit: '0.1' });
    const rounds = await Promise.all(Array.from({ length: 8 }, async () => spendAll(tokenOf(await make()))));
    expect(rounds.reduce((sum, { served }) => sum + served, 0)).toBe(10);
    expect(keySums(gateway, key.id).usage).toBe(100_000_000_000n);
  });

  it('gets a new key with the lowest all-time limit and the lowest recurring limit of their keys', async () => {
    given({ usageLimit: '5' });
    const strict = given(month('1'));
    given({ periodUsageLimit: '1', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' });
    const { status, body } = await make();
    expect([status, limitsOf(body.key)]).toEqual([
      201,
      {
        usageLimit: '5',
        periodUsageLimit: '1',
        periodUsageDurationUnit: 'month',
        expiresAt: null,
        sharesLimitsOf: strict.id,
      },
    ]);
  });

  it('gets a key that ends no later than theirs', async () => {
    const end = Date.now() + DAY;
    given({}, end);
    expect((await make()).body.key.expiresAt).toBe(new Date(end).toISOString());
    const write = { now: Date.now(), pepper: pepper() };
    const body = { projectId: gateway.firstRun.projectId };
    const wanted = `This key can last until ${new Date(end).toISOString()} at most.`;
    for (const expiresAt of [null, end + 1]) {
      expect(() => createKey(gateway.db, person(), body, { ...write, expiresAt })).toThrow(wanted);
    }
  });

  it.each([
    [{ usageLimit: '0.06' }, '/usageLimit', 'at most 0.05 USD'],
    [{ usageLimit: null }, '/usageLimit', 'at most 0.05 USD'],
    [month('2'), '/periodUsageLimit', 'at most 1 USD per 1 month'],
    [
      { periodUsageLimit: '1', periodUsageDurationValue: 1, periodUsageDurationUnit: 'day' },
      '/periodUsageLimit',
      'at most 1 USD per 1 month',
    ],
    [
      { periodUsageLimit: '12', periodUsageDurationValue: 12, periodUsageDurationUnit: 'month' },
      '/periodUsageLimit',
      'at most 1 USD per 1 month',
    ],
    [
      { periodUsageLimit: null, periodUsageDurationValue: null, periodUsageDurationUnit: null },
      '/periodUsageLimit',
      'at most 1 USD per 1 month',
    ],
  ])('cannot ask for more: %j', async (limits, param, words) => {
    given({ usageLimit: '0.05', ...month('1') });
    const { status, body } = await make(limits);
    expect([status, body.error.param]).toEqual([400, param]);
    expect(body.error.message).toContain(words);
  });

  it.each([
    [{ usageLimit: '0.02' }],
    [{ usageLimit: null }],
    [month('2')],
    [{ periodUsageLimit: null }],
    [{ periodUsageDurationValue: 2 }],
    [{ periodUsageAlignment: 'calendar' }],
    [{ periodUsageLimit: '0.1', periodUsageDurationUnit: 'day' }],
  ])('cannot widen the key that they were given: %j', async (patch) => {
    const key = given({ usageLimit: '0.01', ...month('1') });
    const { status } = await master('PATCH', `keys/${key.id}`, patch);
    expect(status).toBe(400);
  });

  it('can lower its limits, and not raise them again', async () => {
    const key = given(month('1'));
    expect((await master('PATCH', `keys/${key.id}`, { periodUsageLimit: '0.5' })).status).toBe(200);
    expect((await master('PATCH', `keys/${key.id}`, { periodUsageLimit: '1' })).status).toBe(400);
  });

  it('cannot widen a key that they made', async () => {
    given({ usageLimit: '0.01' });
    const { id } = (await make()).body.key;
    for (const patch of [{ usageLimit: '1' }, { usageLimit: null }]) {
      expect((await master('PATCH', `keys/${id}`, patch)).status).toBe(400);
    }
    expect((await master('PATCH', `keys/${id}`, month('1'))).status).toBe(200);
  });

  it('is not rid of the limit by disabling or deleting the key, or by another project', async () => {
    const key = given({ usageLimit: '0.02' });
    const write = { now: Date.now(), pepper: pepper() };
    const { project } = createProject(gateway.db, cli, { name: `Second of ${developer}` }, Date.now());
    updateProject(gateway.db, gateway.firstRun.organizationId, project.id, { cachingEnabled: false }, Date.now());
    const elsewhere = () => createKey(gateway.db, person(), { projectId: project.id }, write).key;

    disableKey(gateway.db, person(), key.id, Date.now());
    expect(limitsOf(elsewhere())).toMatchObject({ usageLimit: '0.02', sharesLimitsOf: key.id });
    enableKey(gateway.db, person(), key.id, Date.now());
    deleteKey(gateway.db, person(), key.id, Date.now());
    const [first, second] = [elsewhere(), elsewhere()];
    expect([first, second].map(limitsOf)).toMatchObject([
      { usageLimit: '0.02', sharesLimitsOf: key.id },
      { usageLimit: '0.02', sharesLimitsOf: key.id },
    ]);
    expect([await spendAll(first.token ?? ''), await spendAll(second.token ?? '')]).toEqual([
      { served: 2, code: 'usage_limit_reached' },
      { served: 0, code: 'usage_limit_reached' },
    ]);
  });

  it('keeps it when the secret of a key that they made is rolled', async () => {
    const key = given({ usageLimit: '0.01' });
    const { id } = (await make()).body.key;
    const rolled = rollKey(gateway.db, person(), id, { now: Date.now(), pepper: pepper() }).key;
    expect(rolled.sharesLimitsOf).toBe(key.id);
    expect(await spendAll(rolled.token ?? '')).toEqual({ served: 1, code: 'usage_limit_reached' });
  });

  it('cannot make a key, nor lengthen one, when theirs have expired', async () => {
    const end = Date.now() - 1000;
    const key = given({}, end);
    expect((await make()).body.error.message).toBe(
      'Your keys have expired, so you cannot make another one. Ask an owner or an admin for a key.',
    );
    const again = () => reactivateKey(gateway.db, person(), key.id, Date.now() + DAY, Date.now());
    expect(again).toThrow(`This key can last until ${new Date(end).toISOString()} at most.`);
  });

  it('spends more when the owner raises the limit, with all of their keys', async () => {
    const key = given({ usageLimit: '0.01' });
    const token = tokenOf(await make());
    expect(await spendAll(token)).toEqual({ served: 1, code: 'usage_limit_reached' });
    changeKey(gateway.db, cli, key.id, { usageLimit: '0.03' }, Date.now());
    expect(await spendAll(tokenOf(await make()))).toEqual({ served: 2, code: 'usage_limit_reached' });
  });

  it('learns from the refusal that the shared limit was reached', async () => {
    const key = given({ usageLimit: '0.01' });
    const token = tokenOf(await make());
    await spendAll(key.token);
    const answer = await chat(gateway, hello({ model: 'own/flat' }), { token });
    expect(errorOf(answer).message).toBe(
      'The key that shares its limits with this API key has reached its all-time usage limit of 0.01 USD.',
    );
  });

  it('has a budget that counts each call once', async () => {
    given({ usageLimit: '1' });
    const token = tokenOf(await make());
    for (let call = 0; call < 3; call += 1) await chat(gateway, hello({ model: 'own/flat' }), { token });
    const owner = { kind: 'member', member: developer } as const;
    const spent = () => getBudget(gateway.db, cli, owner, Date.now()).budget.usage;
    expect(spent()).toBe('0.03');
    changeBudget(gateway.db, cli, owner, { usageLimit: '0.05' }, Date.now());
    expect(await spendAll(token)).toEqual({ served: 2, code: 'usage_limit_reached' });
    expect(spent()).toBe('0.05');
  });
});

describe('a developer without a limited key', () => {
  it('makes keys as they like, and may raise again what they have chosen themselves', async () => {
    const { status, body } = await make({ usageLimit: '1' });
    expect([status, limitsOf(body.key)]).toMatchObject([201, { usageLimit: '1', sharesLimitsOf: null }]);
    expect((await make()).body.key.usageLimit).toBe('1');
    expect((await make({ usageLimit: '7' })).status).toBe(201);
    expect((await master('PATCH', `keys/${body.key.id}`, { usageLimit: null })).status).toBe(200);
  });
});

describe('`newKeyLimits` of an organization', () => {
  const setting = { usageLimit: '2', ...month('1'), ttl: { value: 7, unit: 'days' } };

  it('is shown as it was set, in full', () => {
    const before = getOrganization(gateway.db, cli).organization.newKeyLimits;
    const { organization } = changeOrganization(gateway.db, cli, { newKeyLimits: setting }, Date.now());
    expect([before, organization.newKeyLimits]).toEqual([null, { ...setting, periodUsageAlignment: null }]);
    changeOrganization(gateway.db, cli, { newKeyLimits: {} }, Date.now());
    expect(getOrganization(gateway.db, cli).organization.newKeyLimits).toEqual({
      usageLimit: null,
      periodUsageLimit: null,
      periodUsageDurationValue: null,
      periodUsageDurationUnit: null,
      periodUsageAlignment: null,
      ttl: null,
    });
  });

  it('is what a new key gets and can have, by the API and at the page of consent', async () => {
    given({ usageLimit: '0.01' });
    changeOrganization(gateway.db, cli, { newKeyLimits: setting }, Date.now());
    const { status, body } = await make();
    expect([status, limitsOf(body.key)]).toMatchObject([
      201,
      { usageLimit: '2', periodUsageLimit: '1', sharesLimitsOf: null },
    ]);
    expect(Date.parse(body.key.expiresAt ?? '') - Date.parse(body.key.createdAt)).toBe(7 * DAY);
    expect((await make({ usageLimit: '2.01' })).body.error).toMatchObject({ param: '/usageLimit' });
    expect((await make({ usageLimit: '1.5', ...month('0.9') })).status).toBe(201);

    const application = new Application(gateway, signedIn(gateway, developer));
    await application.register();
    const { path, page } = await application.askConsent();
    expect(page.text).toContain('A key that you make can spend at most 2 USD in all and 1 USD per 1 month');
    const refused = await application.browser.submit(path, { ...newKey(gateway), limit: '3', answer: 'allow' });
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('at most 1 USD per 1 month')]);
    const { path: again } = await application.askConsent();
    const back = await application.answer(again, { ...newKey(gateway), days: 'longest', answer: 'allow' });
    expect(back.searchParams.get('code')).not.toBeNull();
  });

  it('holds for keys that developers change, and for no one else', async () => {
    const { id } = (await make({ usageLimit: '1' })).body.key;
    changeOrganization(gateway.db, cli, { newKeyLimits: setting }, Date.now());
    expect((await master('PATCH', `keys/${id}`, { usageLimit: '3' })).status).toBe(400);
    expect((await master('PATCH', `keys/${id}`, { usageLimit: '2' })).status).toBe(200);
    expect(addKey(gateway, { createdBy: developer, usageLimit: '100' }).id).toMatch(/^key_/);
    expect(changeKey(gateway.db, cli, id, { usageLimit: '100' }, Date.now()).key.usageLimit).toBe('100');
  });

  it.each([
    [{ usageLimit: '-1' }, '/newKeyLimits/usageLimit'],
    [{ periodUsageLimit: '1' }, '/newKeyLimits/periodUsageDurationValue'],
    [{ ...month('1'), periodUsageDurationValue: 13 }, '/newKeyLimits/periodUsageDurationValue'],
    [{ ttl: { value: 0, unit: 'days' } }, '/newKeyLimits/ttl/value'],
    [{ ttl: { value: 4000, unit: 'days' } }, '/newKeyLimits/ttl'],
    [{ ttl: { value: 1, unit: 'years' } }, '/newKeyLimits/ttl/unit'],
    [{ limit: '1' }, '/newKeyLimits/limit'],
  ])('is refused where it is wrong: %j', (wrong, param) => {
    const change = () => changeOrganization(gateway.db, cli, { newKeyLimits: wrong }, Date.now());
    expect(change).toThrow(expect.objectContaining({ status: 400, param }));
  });

  it('cannot be set by a developer', async () => {
    expect((await master('PATCH', 'organization', { newKeyLimits: {} })).status).toBe(403);
  });
});

describe('the page of consent', () => {
  it('has chosen a key that can still spend, and shows how much', async () => {
    given({ usageLimit: '0', description: 'Spent' });
    const key = given({ ...month('0.5'), description: 'Laptop' });
    const application = new Application(gateway, signedIn(gateway, developer));
    await application.register();
    const { page } = await application.askConsent();
    expect(page.text).toMatch(
      new RegExp(`<option value="${key.id}" selected>Laptop · pcl_.{9} · 0.5 USD left</option>`),
    );
    expect(page.text).toMatch(/Spent · pcl_.{9} · 0 USD left<\/option>/);
    expect(page.text).toContain('shares the limits of your key Laptop');
  });

  it('does not take a limit for a new key with a key that is there', async () => {
    const key = given({ usageLimit: '1' });
    const application = new Application(gateway, signedIn(gateway, developer));
    await application.register();
    const { path } = await application.askConsent();
    const choice = { ...newKey(gateway), key: key.id, limit: '0.5', answer: 'allow' };
    const { status, text } = await application.browser.submit(path, choice);
    expect([status, text]).toEqual([400, expect.stringContaining('The spend limit is for a new key.')]);
  });

  it('takes no playground key and no key of another member', async () => {
    const playground = gateway.db.connection
      .prepare<[string], { id: string }>("SELECT id FROM keys WHERE createdBy = ? AND kind = 'playground'")
      .get(developer);
    for (const key of [playground?.id ?? '', gateway.keyId]) {
      const application = new Application(gateway, signedIn(gateway, developer));
      await application.register();
      const { path } = await application.askConsent();
      const { status } = await application.browser.submit(path, { ...newKey(gateway), key, answer: 'allow' });
      expect(status).toBe(400);
    }
  });
});
