// The threat: what may be used once is used twice by requests of the same moment, and each gets what it grants. The defence: each use is
// one conditional statement, in one transaction with what it grants; the second use is a replay, and ends the grant.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deleteKey } from '../../src/admin/keys/keys.ts';
import { createSignInLink } from '../../src/admin/sign-in/sign-in-links.ts';
import { createInvitation } from '../../src/admin/tenants/invitations.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { Application, newKey, postForm, type Reply, tokensOf } from '../http/oauth/application.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';
import { rpc } from '../support/mcp.ts';

const ROUNDS = 12;

let gateway: TestGateway;
let application: Application;

/** A gateway of its own for each: the rate of the authorization server is by address. */
beforeEach(async () => {
  gateway = await startGateway();
  application = new Application(gateway);
  await application.register();
});
afterEach(() => gateway.close());

const statusOf = async (token: unknown): Promise<number> =>
  (await rpc(gateway, 'tools/list', {}, { token: String(token) })).status;

const countOf = (table: string, where = ''): number =>
  gateway.db.connection.prepare<[], { count: number }>(`SELECT count(*) AS count FROM ${table} ${where}`).get()
    ?.count ?? 0;

/** Tokens and codes, which belong to grants. */
const heldItems = () => countOf('oauth_items', 'WHERE grantId IS NOT NULL');
const openGrants = () => countOf('oauth_grants', 'WHERE endedAt IS NULL');

const atOnce = <Answer>(count: number, ask: () => Promise<Answer>): Promise<Answer[]> =>
  Promise.all(Array.from({ length: count }, ask));

/** The answers to requests that were sent at once, and what is left when all are there. */
async function leftAfter(answers: readonly Reply[]) {
  const tokens = answers.flatMap(({ status, body }) => (status === 200 ? [body.access_token] : []));
  return {
    given: tokens.length,
    refused: answers.filter(({ status }) => status !== 200).map(({ status, body }) => [status, body.error]),
    good: (await Promise.all(tokens.map(statusOf))).filter((status) => status === 200).length,
    items: heldItems(),
    grants: openGrants(),
  };
}

const oneOf = (count: number) => ({
  given: 1,
  refused: Array.from({ length: count - 1 }, () => [400, 'invalid_grant']),
  good: 0,
  items: 0,
  grants: 0,
});

describe('of requests of the same moment', () => {
  it('with one authorization code, one is given tokens and the others end them, in every round', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const code = await application.code({ key: gateway.keyId });
      const count = 2 + (round % 3);
      expect(await leftAfter(await atOnce(count, () => application.exchange(code)))).toEqual(oneOf(count));
    }
  });

  it('with one refresh token, one is given tokens and the others end them, in every round', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { refresh_token: token } = await application.connect({ key: gateway.keyId });
      const count = 2 + (round % 3);
      expect(await leftAfter(await atOnce(count, () => application.refresh(token)))).toEqual(oneOf(count));
    }
  });

  it('with a refresh token and the one that it was rotated to, none goes on', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { refresh_token: first } = await application.connect({ key: gateway.keyId });
      const second = tokensOf((await application.refresh(first)).body).refresh_token;
      const [replay] = await Promise.all([application.refresh(first), application.refresh(second)]);
      expect([replay.status, replay.body.error, openGrants(), heldItems()]).toEqual([400, 'invalid_grant', 0, 0]);
    }
  });

  it('that refresh, and revoke the token or delete the key, none leaves a token that is good', async () => {
    const actor = { kind: 'cli', organizationId: gateway.firstRun.organizationId } as const;
    const ends = [
      (token: string) => postForm(gateway.origin, '/oauth/revoke', { token, client_id: application.clientId }),
      async (_: string, keyId: string) => void deleteKey(gateway.db, actor, keyId, Date.now()),
    ];
    for (let round = 0; round < ROUNDS; round++) {
      const key = addKey(gateway);
      const { refresh_token: token = '' } = await application.connect({ key: key.id });
      const end = ends[round % 2];
      const [refreshed] = await Promise.all([application.refresh(token), end?.(token, key.id)]);
      const { access_token: given = 'none', refresh_token: next = 'none' } = refreshed.body;
      const left = [await statusOf(given), (await application.refresh(String(next))).body.error];
      expect([left, openGrants(), heldItems()]).toEqual([[401, 'invalid_grant'], 0, 0]);
    }
  });

  it('that go on with one consent, one is led back with a code', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { path } = await application.askConsent();
      const fields = { ...newKey(gateway), key: gateway.keyId, answer: 'allow' };
      const answered = await application.browser.submit(path, fields);
      const { pathname } = new URL(answered.headers.location ?? '');
      const led = await atOnce(3, () => application.browser.get(pathname));
      const codes = led.filter(({ headers }) => headers.location?.includes('code='));
      expect([codes.length, led.map(({ status }) => status).sort()]).toEqual([1, [303, 400, 400]]);
      expect(countOf('oauth_items', "WHERE model = 'AuthorizationCode'")).toBe(1);
    }
  });

  it('that answer one consent, one makes a key and a grant', async () => {
    for (let round = 1; round <= ROUNDS; round++) {
      const { path } = await application.askConsent();
      const fields = { ...newKey(gateway), answer: 'allow' };
      const before = countOf('keys');
      const answers = await atOnce(3, () => application.browser.submit(path, fields));
      const left = [countOf('keys') - before, openGrants(), countOf('oauth_items', "WHERE model = 'Grant'")];
      expect([answers.map(({ status }) => status).sort(), left]).toEqual([
        [303, 404, 404],
        [1, 1, 1],
      ]);
    }
  });
});

it('a consent that was refused cannot be allowed any more, nor the other way round', async () => {
  for (const [first, second] of [
    ['refuse', 'allow'],
    ['allow', 'refuse'],
  ] as const) {
    const { path } = await application.askConsent();
    const answers = [first, second].map((answer) =>
      application.browser.submit(path, { ...newKey(gateway), key: gateway.keyId, answer }),
    );
    expect((await Promise.all(answers)).map(({ status }) => status).sort()).toEqual([303, 404]);
  }
});

it('a consent that failed leaves no grant behind', async () => {
  const { path } = await application.askConsent();
  const { status } = await application.browser.submit(path, { ...newKey(gateway), limit: 'lots', answer: 'allow' });
  expect([status, countOf('oauth_items', "WHERE model = 'Grant'")]).toEqual([400, 0]);
});

describe('of processes that open one database at the same moment', () => {
  const root = new URL('../../', import.meta.url).href;

  /** Runs the function in several processes, each of which waits for the same instant. @returns `used`, or the status with which it was refused */
  async function inProcesses(token: string, module: string, call: string): Promise<string[]> {
    const script = `
      import { databasePath } from '${root}src/store/db/data-dir.ts';
      import { openDatabase } from '${root}src/store/db/database.ts';
      import { loadSecrets } from '${root}src/store/secrets/secrets.ts';
      import * as tested from '${root}src/${module}';
      const [dataDir, token, at] = process.argv.slice(-3);
      const { peppers, signingKey } = loadSecrets(dataDir, { create: false });
      const db = openDatabase(databasePath(dataDir), { busyTimeoutMs: 10_000, auditKey: signingKey.key });
      while (Date.now() < Number(at));
      try { ${call}; console.log('used'); } catch (error) { console.log(error.status ?? String(error)); }`;
    const args = ['--input-type=module', '-e', script, '--', gateway.dataDir, token, String(Date.now() + 2000)];
    const run = promisify(execFile);
    const ran = await atOnce(3, () => run(process.execPath, args));
    return ran.map(({ stdout }) => stdout.trim()).sort();
  }

  const write = () => ({ now: Date.now(), pepper: loadSecrets(gateway.dataDir, { create: false }).peppers[0] });
  const actor = () => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId }) as const;

  it('one signs in with a link', async () => {
    const { token } = createSignInLink(gateway.db, actor(), gateway.memberId, write());
    const used = await inProcesses(
      token,
      'admin/sign-in/sign-in-links.ts',
      'tested.useSignInLink(db, token, { now: Date.now(), peppers })',
    );
    expect(used).toEqual(['404', '404', 'used']);
  });

  it('one accepts an invitation', async () => {
    const { invitation } = createInvitation(gateway.db, actor(), { email: 'x@y.example', role: 'admin' }, write());
    const accepted = await inProcesses(
      invitation.token ?? '',
      'admin/sign-in/accept-invitation.ts',
      "tested.acceptInvitation(db, { token }, { now: Date.now(), peppers, by: 'cli' })",
    );
    expect(accepted).toEqual(['404', '404', 'used']);
  });
});
