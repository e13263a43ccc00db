// The threat: a secret, a key or a member is gone, and what was made with it still works. The defence: what is derived ends with what it
// came from, in the same transaction, and what can end by time is judged each time it is used.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { deleteKey, disableKey, enableKey, rollKey } from '../../src/admin/keys/keys.ts';
import { endDueGrants } from '../../src/admin/keys/oauth-grants.ts';
import { setPassword } from '../../src/admin/sign-in/sign-in.ts';
import { createSignInLink } from '../../src/admin/sign-in/sign-in-links.ts';
import { newMember, removeMember } from '../../src/admin/tenants/members.ts';
import { createProject, deleteProject } from '../../src/admin/tenants/projects.ts';
import { newId } from '../../src/domain/id.ts';
import { hashPassword } from '../../src/domain/identity.ts';
import { ManualClock } from '../../src/domain/time.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { Application, postForm, type Reply, register, signedIn, type Tokens } from '../http/oauth/application.ts';
import { Browser } from '../support/browser.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../support/gateway.ts';
import { rpc } from '../support/mcp.ts';

const HOUR = 3_600_000;

let gateway: TestGateway;
let clock: ManualClock;
let actor: Actor;

beforeEach(async () => {
  clock = new ManualClock(Date.now());
  gateway = await startGateway({}, { clock });
  actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId };
});
afterEach(() => gateway.close());

const write = () => ({ now: clock.now(), pepper: loadSecrets(gateway.dataDir, { create: false }).peppers[0] });

const MACHINE = { client_name: 'Nightly', grant_types: ['client_credentials'], response_types: [], redirect_uris: [] };

const registerWith = (token: string): Promise<Reply> =>
  register(gateway.origin, MACHINE, { authorization: `Bearer ${token}` });

const ownToken = ({ body }: Reply): Promise<Reply> =>
  postForm(
    gateway.origin,
    '/oauth/token',
    { grant_type: 'client_credentials' },
    { authorization: `Basic ${Buffer.from(`${body.client_id}:${body.client_secret}`).toString('base64')}` },
  );

const statusOf = async (token: unknown): Promise<number> =>
  (await rpc(gateway, 'tools/list', {}, { token: String(token) })).status;

const openGrants = (): string[] =>
  gateway.db.connection
    .prepare<[], string>('SELECT clientName FROM oauth_grants WHERE endedAt IS NULL ORDER BY id')
    .pluck()
    .all();

const heldTokens = (): number =>
  gateway.db.connection
    .prepare<[], number>('SELECT count(*) FROM oauth_items WHERE grantId IS NOT NULL')
    .pluck()
    .get() ?? 0;

/** A service application, registered with a key, that has a token; and one that a member allowed the same key. */
async function bothOf(key: TestKey) {
  const machine = await registerWith(key.token);
  const { body } = await ownToken(machine);
  const application = new Application(gateway);
  const tokens = await application.connect({ key: key.id });
  return {
    application,
    tokens,
    machine: async () => [(await ownToken(machine)).body.error ?? 'given', await statusOf(body.access_token)],
    consented: async () => {
      const refreshed = await application.refresh(tokens.refresh_token);
      return [refreshed.body.error ?? 'given', await statusOf(tokens.access_token)];
    },
  };
}

const REFUSED_MACHINE = ['unauthorized_client', 401];
const REFUSED = ['invalid_grant', 401];
const GIVEN = ['given', 200];

describe('rolling a key', () => {
  it('ends the service application that its old secret registered, and not what a member allowed', async () => {
    const key = addKey(gateway);
    const { machine, consented } = await bothOf(key);
    const { applications } = rollKey(gateway.db, actor, key.id, write());
    expect([await machine(), await consented(), openGrants()]).toEqual([REFUSED_MACHINE, GIVEN, ['Test application']]);
    expect([applications?.ended, applications?.kept].map((list) => list?.map(({ clientName }) => clientName))).toEqual([
      ['Nightly'],
      ['Test application'],
    ]);
  });

  it('ends all of them, or none, where that is asked for', async () => {
    const [all, none] = [addKey(gateway), addKey(gateway)];
    const ofAll = await bothOf(all);
    const ofNone = await bothOf(none);
    rollKey(gateway.db, actor, all.id, { ...write(), ends: 'all' });
    rollKey(gateway.db, actor, none.id, { ...write(), ends: 'none' });
    expect([await ofAll.machine(), await ofAll.consented()]).toEqual([REFUSED_MACHINE, REFUSED]);
    expect([await ofNone.machine(), await ofNone.consented()]).toEqual([GIVEN, GIVEN]);
  });

  it('with an overlap ends them with the old secret, on time and without the background job', async () => {
    const key = addKey(gateway);
    const { machine, consented } = await bothOf(key);
    rollKey(gateway.db, actor, key.id, { ...write(), oldEndsAt: clock.now() + HOUR / 2 });
    expect(await machine()).toEqual(GIVEN);
    clock.advance(HOUR / 2);
    expect([await machine(), await consented()]).toEqual([REFUSED_MACHINE, GIVEN]);
  });

  it('with an overlap ends what is registered with the old secret during it, too', async () => {
    const key = addKey(gateway);
    rollKey(gateway.db, actor, key.id, { ...write(), oldEndsAt: clock.now() + HOUR / 2 });
    const machine = await registerWith(key.token);
    const { body } = await ownToken(machine);
    expect(await statusOf(body.access_token)).toBe(200);
    clock.advance(HOUR / 2);
    expect(await statusOf(body.access_token)).toBe(401);
    expect([endDueGrants(gateway.db, clock.now(), 5), openGrants()]).toEqual([1, []]);
  });

  it.each([
    ['rolled again', (id: string) => void rollKey(gateway.db, actor, id, { ...write(), ends: 'none' })],
    ['disabled', (id: string) => void disableKey(gateway.db, actor, id, clock.now())],
  ])('with an overlap ends them at once when the key is %s', async (_, change) => {
    const key = addKey(gateway);
    const { machine } = await bothOf(key);
    rollKey(gateway.db, actor, key.id, { ...write(), oldEndsAt: clock.now() + HOUR });
    change(key.id);
    enableKey(gateway.db, actor, key.id, clock.now());
    expect([await machine(), openGrants()]).toEqual([REFUSED_MACHINE, ['Test application']]);
  });
});

describe('a refresh is 400 invalid_grant, and ends the grant,', () => {
  let key: TestKey;
  let application: Application;
  let tokens: Tokens;

  const connect = async (wanted: Parameters<typeof addKey>[1] = {}, expiresAt: number | null = null) => {
    key = addKey(gateway, wanted, expiresAt, clock.now());
    application = new Application(gateway, signedIn(gateway, wanted.createdBy ?? gateway.memberId, clock.now()));
    tokens = await application.connect({ key: key.id });
  };
  const refused = async () => {
    const { status, body } = await application.refresh(tokens.refresh_token);
    return [status, body.error, openGrants(), heldTokens()];
  };
  const ENDED = [400, 'invalid_grant', [], 0];

  it('after the key was deleted, which ends it already', async () => {
    await connect();
    deleteKey(gateway.db, actor, key.id, clock.now());
    expect([openGrants(), heldTokens()]).toEqual([[], 0]);
    expect(await refused()).toEqual(ENDED);
  });

  it('after the key expired', async () => {
    await connect({}, clock.now() + HOUR);
    clock.advance(HOUR);
    expect(await refused()).toEqual(ENDED);
  });

  it('after its member was removed, which ends it already', async () => {
    const id = newId('mem');
    const { organizationId } = gateway.firstRun;
    newMember(gateway.db, { id, organizationId, email: 'bob@x.example', name: null, role: 'developer' }, clock.now());
    await connect({ createdBy: id });
    removeMember(gateway.db, actor, id, clock.now());
    expect([openGrants(), heldTokens()]).toEqual([[], 0]);
    expect(await refused()).toEqual(ENDED);
  });

  it('after its project was deleted, which ends it already', async () => {
    const { project } = createProject(gateway.db, actor, { name: 'Second' }, clock.now());
    await connect({ projectId: project.id });
    deleteProject(gateway.db, actor, project.id, clock.now());
    expect([openGrants(), heldTokens()]).toEqual([[], 0]);
    expect(await refused()).toEqual(ENDED);
  });

  it('but waits for a key that is disabled: the same refresh token is good when it is enabled again', async () => {
    await connect();
    disableKey(gateway.db, actor, key.id, clock.now());
    const { status, body } = await application.refresh(tokens.refresh_token);
    expect([status, body.error, openGrants()]).toEqual([400, 'invalid_grant', ['Test application']]);
    enableKey(gateway.db, actor, key.id, clock.now());
    expect((await application.refresh(tokens.refresh_token)).status).toBe(200);
  });
});

it('a code is worth nothing after its key was deleted, and leaves nothing behind', async () => {
  const key = addKey(gateway);
  const application = new Application(gateway);
  const code = await application.code({ key: key.id });
  deleteKey(gateway.db, actor, key.id, clock.now());
  const { status, body } = await application.exchange(code);
  expect([status, body.error, heldTokens()]).toEqual([400, 'invalid_grant', 0]);
});

it('a consent is worth no code after its key was deleted', async () => {
  const key = addKey(gateway);
  const application = new Application(gateway);
  await application.register();
  const { path } = await application.askConsent();
  const answered = await application.browser.submit(path, { key: key.id, answer: 'allow' });
  deleteKey(gateway.db, actor, key.id, clock.now());
  const back = await application.browser.get(new URL(answered.headers.location ?? '').pathname);
  expect([back.headers.location?.includes('code=') ?? false, heldTokens()]).toEqual([false, 0]);
});

describe('a password that is set', () => {
  const OLD = 'the password of before';
  const NEW = 'the password from now on';
  const person = () => ({ kind: 'person', organizationId: actor.organizationId, memberId: gateway.memberId }) as const;
  const PAGE = '/oauth/interaction/sign-in';

  it('ends the sign-in links that wait', async () => {
    const { token } = createSignInLink(gateway.db, actor, gateway.memberId, write());
    const { token: other } = createSignInLink(gateway.db, actor, gateway.memberId, write());
    setPassword(gateway.db, person(), await hashPassword(NEW), clock.now());
    const browser = new Browser(gateway.origin);
    const statuses = [token, other].map((each) => browser.get(`/oauth/interaction/link?token=${each}`));
    expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([404, 404]);
  });

  it('while a sign-in with the old one is compared gives that sign-in no session', async () => {
    const [oldHash, newHash] = [await hashPassword(OLD), await hashPassword(NEW)];
    for (let round = 0; round < 4; round++) {
      setPassword(gateway.db, person(), oldHash, clock.now());
      const browser = new Browser(gateway.origin);
      await browser.get(PAGE);
      const signingIn = browser.submit(PAGE, { email: gateway.firstRun.ownerEmail, password: OLD });
      // Its hash takes longer than this, and is compared with what was read before.
      await new Promise((resolve) => setTimeout(resolve, 30));
      setPassword(gateway.db, person(), newHash, clock.now());
      const { status } = await signingIn;
      const sessions = gateway.db.connection.prepare('SELECT count(*) FROM sessions').pluck().get();
      expect([status, sessions]).toEqual([401, 0]);
    }
  });
});
