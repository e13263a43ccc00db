// A request that ended with an error before it was a call can be looked up by its id; what it held cannot.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deleteKey, rollKey } from '../../src/admin/keys/keys.ts';
import { newSecret } from '../../src/admin/keys/new-secret.ts';
import { RefusedRecorder, type SeenRefusal } from '../../src/admin/log/refused-recorder.ts';
import { idsFrom, newId } from '../../src/domain/id.ts';
import type { RefusedRequestRecord } from '../../src/generated/types.ts';
import { keepRefused, type RefusedRequest } from '../../src/store/ledger/refused-requests.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { ID } from '../admin/tenants.ts';
import { runIn } from '../cli/command-line.ts';
import { storeWithTenant } from '../store/fixture.ts';
import { bearer, chat, hello, JSON_TYPE, post } from '../support/chat.ts';
import { addKey, disable, startGateway, type TestGateway } from '../support/gateway.ts';
import { type Answer, send } from '../support/request.ts';
import { storedRefusal } from '../support/stored-calls.ts';
import { type ManagementServer, startManagementServer } from './master/management-server.ts';

const rows = ({ db }: TestGateway): Record<string, unknown>[] =>
  db.connection.prepare<[], Record<string, unknown>>('SELECT * FROM refused_requests ORDER BY id').all();

/** The row of a request, once it is written. */
async function rowOf(gateway: TestGateway, { headers }: Answer): Promise<Record<string, unknown>> {
  const id = headers['x-request-id'];
  for (;;) {
    const row = rows(gateway).find((each) => each.id === id);
    if (row !== undefined) return row;
    await sleep(20);
  }
}

const written = (gateway: TestGateway, count: number) => expect.poll(() => rows(gateway).length).toBe(count);

const actor = ({ firstRun }: TestGateway) => ({ kind: 'cli', organizationId: firstRun.organizationId }) as const;

const pepperOf = (gateway: TestGateway) => loadSecrets(gateway.dataDir, { create: false }).peppers[0];

describe('a refused request', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startGateway({ MAX_BODY_BYTES: '2000', TRUSTED_PROXIES: 'none' });
  });
  afterAll(() => gateway.close());

  it('of a disabled key says whose it was, over HTTP and on the command line', async () => {
    const key = addKey(gateway, { description: 'nightly' });
    disable(gateway, key.id);
    const answer = await chat(gateway, hello(), {
      token: key.token,
      headers: [
        ['user-agent', 'OpenAI/Python 1.40.2'],
        ['x-request-id', 'my-own-7'],
      ],
    });
    expect(answer.status).toBe(401);
    await rowOf(gateway, answer);

    const shown: RefusedRequestRecord = {
      requestId: String(answer.headers['x-request-id']),
      clientRequestId: 'my-own-7',
      time: expect.stringMatching(/^20\d\d-.*Z$/),
      statusCode: 401,
      errorCode: 'api_key_disabled',
      message: 'This API key is disabled.',
      detail: null,
      endpoint: 'POST /v1/chat/completions',
      requestedModel: null,
      projectId: gateway.firstRun.projectId,
      keyId: key.id,
      memberId: gateway.memberId,
      address: '127.0.0.1',
      userAgent: 'OpenAI/Python 1.40.2',
      unrecorded: 0,
    };
    const ask = async (route: string) =>
      (await send(gateway.management, { path: `/v1/master/${route}`, headers: [bearer(gateway.firstRun.masterKey)] }))
        .json;
    expect(await ask(`requests/${shown.requestId}`)).toEqual({ request: shown });
    expect(await ask('requests/my-own-7')).toEqual({ request: shown });
    expect(await ask(`requests?status=401&code=api_key_disabled&keyId=${key.id}`)).toEqual({
      requests: [shown],
      nextCursor: null,
    });
    expect(await ask('requests?status=404')).toEqual({ requests: [], nextCursor: null });
    expect(await ask('requests/nothing-like-it')).toMatchObject({ error: { code: 'not_found' } });
    expect(await ask('requests?status=200')).toMatchObject({ error: { param: '/status' } });
    for (const command of ['calls', 'requests']) {
      const { stdout, code } = await runIn(gateway.dataDir, {}, command, 'show', shown.requestId);
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^answer +401 api_key_disabled$/m)]);
      expect(stdout).toMatch(/^key +nightly \(key_[0-9a-f]{32}\)$/m);
    }
    const listed = await runIn(gateway.dataDir, {}, 'requests', 'list', '--key', 'nightly', '--json');
    expect(JSON.parse(listed.stdout)).toEqual({ requests: [shown], nextCursor: null });
    const unknown = await runIn(gateway.dataDir, {}, 'requests', 'list', '--unknown', '--json');
    expect(unknown.stdout).not.toContain(shown.requestId);
  });

  it.each<[what: string, detail: RegExp | null, isKnown: boolean, token: () => string | undefined]>([
    ['without a key', null, false, () => undefined],
    ['with a mistyped key', /mistyped/, false, () => `${gateway.firstRun.gatewayKey.slice(0, -1)}_`],
    [
      'with a key of another installation',
      /No key has this secret/,
      false,
      () => newSecret('gateway', pepperOf(gateway)).token,
    ],
    [
      'with a deleted key',
      /deleted/,
      true,
      () => {
        const { id, token } = addKey(gateway);
        deleteKey(gateway.db, actor(gateway), id, Date.now());
        return token;
      },
    ],
    [
      'with the old secret of a rolled key',
      /rolled/,
      true,
      () => {
        const { id, token } = addKey(gateway);
        const now = Date.now();
        rollKey(gateway.db, actor(gateway), id, { now, pepper: pepperOf(gateway), oldEndsAt: now - 1 });
        return token;
      },
    ],
    ['with an expired key', null, true, () => addKey(gateway, {}, Date.now() - 1).token],
  ])('%s has a row that says why', async (_, detail, isKnown, token) => {
    const secret = token();
    const headers = secret === undefined ? [JSON_TYPE] : [bearer(secret), JSON_TYPE];
    const answer = await post(gateway, hello(), headers);
    const row = await rowOf(gateway, answer);
    expect([answer.status, row.statusCode, row.organizationId !== null, row.keyId !== null]).toEqual([
      401,
      401,
      isKnown,
      isKnown,
    ]);
    expect(row.detail).toEqual(detail === null ? null : expect.stringMatching(detail));
    if (secret !== undefined) expect(JSON.stringify(row)).not.toContain(secret.slice(0, 20));
    if (!isKnown) {
      const seen = await send(gateway.management, {
        path: `/v1/master/requests/${String(row.id)}`,
        headers: [bearer(gateway.firstRun.masterKey)],
      });
      expect(seen.status).toBe(404); // It is no organization's.
      const { stdout } = await runIn(gateway.dataDir, {}, 'requests', 'show', String(row.id));
      expect(stdout).toMatch(/^key +none that is known$/m);
    }
  });

  it.each<[status: number, endpoint: string, more: Record<string, unknown>, ask: () => Promise<Answer>]>([
    [
      404,
      'POST /v1/chat/completions',
      { errorCode: 'model_not_found', requestedModel: 'gpt-none', message: 'The model `…` does not exist.' },
      () => chat(gateway, hello({ model: 'gpt-none' })),
    ],
    [400, 'POST /v1/chat/completions', { errorCode: 'invalid_json' }, () => chat(gateway, '{"a')],
    [
      400,
      'POST /v1/chat/completions',
      { errorCode: 'unsupported_parameter', message: expect.stringMatching(/^`…` .*\.$/) },
      () => chat(gateway, hello({ nonsense: 1 })),
    ],
    [
      400,
      'POST /v1/chat/completions',
      { message: '/messages/0/role (…) must be one of developer, system, user, assistant, tool, function.' },
      () => chat(gateway, hello({ messages: [{ role: 'prophet', content: 'x' }] })),
    ],
    [
      413,
      'POST /v1/chat/completions',
      { errorCode: 'request_too_large' },
      () => chat(gateway, hello({ x: 'y'.repeat(3000) })),
    ],
    [
      415,
      'POST /v1/chat/completions',
      { errorCode: 'unsupported_media_type' },
      () => post(gateway, 'x', [bearer(gateway.firstRun.gatewayKey), ['content-type', 'text/plain']]),
    ],
    [
      404,
      'POST /v1/embeddings',
      { message: expect.stringMatching(/^There is nothing at \/v1\/embeddings\./) },
      () => send(gateway.origin, { method: 'POST', path: '/v1/embeddings' }),
    ],
    [
      404,
      'GET /…/…',
      { message: 'There is nothing at /…/….' },
      () => send(gateway.origin, { path: '/my-secret/words' }),
    ],
    [
      405,
      'GET /v1/chat/completions',
      { errorCode: 'method_not_allowed' },
      () => send(gateway.origin, { path: '/v1/chat/completions' }),
    ],
    [
      421,
      'GET /v1/models',
      { errorCode: 'misdirected_request' },
      () => send(gateway.origin, { path: '/v1/models', headers: [['host', 'evil.example']] }),
    ],
  ])('that is a %i at %s has a row', async (status, endpoint, more, ask) => {
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(await rowOf(gateway, answer)).toMatchObject({ statusCode: status, endpoint, ...more });
  });

  it('has no row where it was a call, however that ended', async () => {
    const before = rows(gateway).length;
    const answers = [
      await chat(gateway, hello()),
      await chat(gateway, hello({ model: 'sandbox-faulty', messages: [{ role: 'user', content: 'fail:500' }] })),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 502]);
    await sleep(600);
    expect(rows(gateway)).toHaveLength(before);
  });
});

it('refused requests over a rate are counted with the next that has a row', async () => {
  const gateway = await startGateway({ RATE_LIMIT_CHAT_PER_MINUTE: '1' });
  try {
    await chat(gateway, hello());
    for (let request = 0; request < 80; request += 1) expect((await chat(gateway, hello())).status).toBe(429);
    await written(gateway, 60);
    expect(rows(gateway)[0]).toMatchObject({ errorCode: 'rate_limit_exceeded', keyId: gateway.keyId });
  } finally {
    await gateway.close();
  }
});

it('REFUSED_REQUESTS_HOURS=off keeps none', async () => {
  const gateway = await startGateway({ REFUSED_REQUESTS_HOURS: 'off' });
  try {
    await post(gateway, hello(), [JSON_TYPE]);
    await sleep(600);
    expect(rows(gateway)).toEqual([]);
  } finally {
    await gateway.close();
  }
});

describe('who sees refused requests', () => {
  let server: ManagementServer;
  beforeEach(async () => {
    server = await startManagementServer();
  });
  afterEach(() => server.close());

  it('is their organization, and of developers the owner of the key', async () => {
    const own = { organizationId: ID.organization, projectId: ID.project };
    const ofOwner = storedRefusal({ ...own, keyId: ID.ownerKey, memberId: ID.owner });
    const ofDeveloper = storedRefusal({ ...own, keyId: ID.developerKey, memberId: ID.developer });
    const ofNobody = storedRefusal({});
    await server.store.write((db) => keepRefused(db, [ofOwner, ofDeveloper, ofNobody]));
    const seen = async (token: string): Promise<string[]> => {
      const { text } = await server.request('GET', '/v1/master/requests', { token });
      return JSON.parse(text).requests.map(({ requestId }: RefusedRequestRecord) => requestId);
    };
    const status = async (token: string, { id }: RefusedRequest) =>
      (await server.request('GET', `/v1/master/requests/${id}`, { token })).status;

    const { owner, admin, developer, foreigner: other } = server.tokens;
    expect(await seen(owner)).toEqual([ofDeveloper.id, ofOwner.id]);
    expect(await seen(admin)).toEqual([ofDeveloper.id, ofOwner.id]);
    expect(await seen(developer)).toEqual([ofDeveloper.id]);
    expect(await seen(other)).toEqual([]);
    for (const each of [ofOwner, ofDeveloper, ofNobody]) {
      expect(await Promise.all([owner, developer, other].map((token) => status(token, each)))).toEqual([
        each === ofNobody ? 404 : 200,
        each === ofDeveloper ? 200 : 404,
        404,
      ]);
    }
    expect((await server.request('GET', `/v1/master/requests?keyId=${ID.ownerKey}`, { token: developer })).status).toBe(
      404,
    );
    expect((await server.request('GET', `/v1/master/requests?memberId=${ID.owner}`, { token: developer })).status).toBe(
      403,
    );
  });
});

it('rows are deleted after their hours', async () => {
  const { store } = await storeWithTenant();
  const now = Date.now();
  const at = (hours: number, place: number) =>
    `${idsFrom('req', now - hours * 3_600_000).slice(0, -4)}${String(place).padStart(4, '0')}`;
  const old = Array.from({ length: 450 }, (_, place) => storedRefusal({ id: at(25, place) }));
  const fresh = storedRefusal({ id: at(23, 0) });
  await store.write((db) => keepRefused(db, [...old, fresh]));
  const recorder = new RefusedRecorder({ store, clock: { now: () => now }, telemetry: { warn: () => {} }, hours: 24 });
  await recorder.close();
  expect(await store.read((db) => db.connection.prepare('SELECT id FROM refused_requests').pluck().all())).toEqual([
    fresh.id,
  ]);
});

const refusal = (changes: Partial<SeenRefusal>): SeenRefusal => ({
  requestId: newId('req'),
  clientRequestId: undefined,
  whose: undefined,
  statusCode: 401,
  errorCode: 'invalid_api_key',
  message: 'The API key is not valid.',
  param: null,
  detail: undefined,
  method: 'POST',
  path: '/v1/chat/completions',
  route: '/v1/chat/completions',
  body: undefined,
  clientAddress: null,
  network: '192.0.2.1',
  userAgent: undefined,
  ...changes,
});

it('a flood of unknown keys takes no row of a known one', async () => {
  const { store, tenant } = await storeWithTenant();
  const recorder = new RefusedRecorder({ store, clock: { now: Date.now }, telemetry: { warn: () => {} }, hours: 24 });
  const whose = { organizationId: tenant.organizationId, projectId: 'proj_1', keyId: 'key_1', memberId: 'mem_1' };
  const startedAt = performance.now();
  for (let request = 0; request < 200_000; request += 1)
    recorder.note(refusal({ network: `192.0.2.${request % 20_000}` }));
  const tookMs = performance.now() - startedAt;
  recorder.note(refusal({ whose }));
  await recorder.close();
  const counted = await store.read((db) =>
    db.connection
      .prepare('SELECT organizationId IS NULL AS isUnknown, count(*) AS rows FROM refused_requests GROUP BY 1')
      .all(),
  );
  expect(counted).toEqual([
    { isUnknown: 0, rows: 1 },
    { isUnknown: 1, rows: 200 },
  ]);
  expect(tookMs / 200_000).toBeLessThan(0.02);
});
