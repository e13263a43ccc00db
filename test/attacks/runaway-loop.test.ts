// A loop that nobody stops: what it takes of a minute, and what it leaves to colleagues.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Actor } from '../../src/admin/audit/audit-trail.ts';
import { changeKey, createKey, deleteKey } from '../../src/admin/keys/keys.ts';
import { addMember, changeMember } from '../../src/admin/tenants/members.ts';
import { changeOrganization } from '../../src/admin/tenants/organizations.ts';
import { changeProject } from '../../src/admin/tenants/projects.ts';
import type { Overrides } from '../../src/container.ts';
import { ManualClock } from '../../src/domain/time.ts';
import type { KeyCreate, KeyPatch } from '../../src/generated/types.ts';
import { loadSecrets } from '../../src/store/secrets/secrets.ts';
import { chat, errorOf, hello } from '../support/chat.ts';
import { addKey, startGateway, type TestGateway, type TestKey } from '../support/gateway.ts';
import { draw, fox, moderate } from '../support/images.ts';
import { callTool, toolResultOf } from '../support/mcp.ts';
import type { Answer } from '../support/request.ts';
import { callRows } from '../support/rows.ts';
import {
  chunk,
  completion,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  upstream = await startUpstream();
  upstream.begin(json(completion('Hello')));
});
afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

async function start(env: Readonly<Record<string, string>> = {}, overrides: Overrides = {}): Promise<void> {
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...env }, overrides);
}

const cli = (): Actor => ({ kind: 'cli', organizationId: gateway.firstRun.organizationId });

/** A developer with a key of their own. */
function newcomer(name: string, wanted: Partial<KeyCreate> = {}): TestKey & { readonly memberId: string } {
  const { member } = addMember(gateway.db, cli(), { email: `${name}@example.com`, role: 'developer' }, Date.now());
  return { ...addKey(gateway, { createdBy: member.id, ...wanted }), memberId: member.id };
}

const ask = (token: string, more: object = {}): Promise<Answer> =>
  chat(gateway, hello({ model: 'acme/large', ...more }), { token });

/** Arguments of the tool `chat`. */
const SAY = { model: 'acme/large', messages: [{ role: 'user', content: 'Hello' }] };

/** The statuses of so many requests at the same moment, and how often each came. */
async function atOnce(requests: number, send: (index: number) => Promise<Answer>): Promise<Record<string, number>> {
  const answers = await Promise.all(Array.from({ length: requests }, (_, index) => send(index)));
  const counts: Record<string, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describe("one key in a tight loop at the organization's limit", () => {
  it('leaves eleven colleagues their calls: none of them gets a 429', async () => {
    await start({ RATE_LIMIT_CHAT_PER_MINUTE: '60' });
    const loop = newcomer('loop');
    const colleagues = Array.from({ length: 11 }, (_, index) => newcomer(`colleague${index}`));

    const looped = await atOnce(100, () => ask(loop.token));
    const worked = await Promise.all([
      atOnce(50, () => ask(loop.token)),
      ...colleagues.map(({ token }) => atOnce(5, () => ask(token))),
    ]);

    expect(looped).toEqual({ 200: 60, 429: 40 });
    expect(worked).toEqual([{ 429: 50 }, ...colleagues.map(() => ({ 200: 5 }))]);
  });

  it('leaves a second key of the same member its part too', async () => {
    await start({ RATE_LIMIT_CHAT_PER_MINUTE: '20' });
    const other = addKey(gateway);
    await atOnce(30, () => chat(gateway, hello()));

    expect(await atOnce(20, () => ask(other.token))).toEqual({ 200: 10, 429: 10 });
  });

  it('takes nothing from a colleague by keys that it makes in numbers', async () => {
    await start({ RATE_LIMIT_CHAT_PER_MINUTE: '40' });
    const loop = newcomer('loop');
    const keys = Array.from({ length: 40 }, () => addKey(gateway, { createdBy: loop.memberId }));
    const colleague = newcomer('colleague');
    await ask(colleague.token);

    await atOnce(400, (index) => ask(keys[index % 40]?.token ?? ''));

    expect(await atOnce(25, () => ask(colleague.token))).toEqual({ 200: 19, 429: 6 });
  });

  it('leaves a colleague the tools of MCP', async () => {
    await start({ RATE_LIMIT_MCP_PER_MINUTE: '10', RATE_LIMIT_CHAT_PER_MINUTE: '10' });
    const [loop, colleague] = [newcomer('loop'), newcomer('colleague')];
    const say = (token: string) => callTool(gateway, 'chat', SAY, { token });

    await atOnce(20, () => say(loop.token));
    const answers = await Promise.all([1, 2, 3].map(() => say(colleague.token)));

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(answers.map((answer) => toolResultOf(answer).isError)).toEqual([undefined, undefined, undefined]);
    expect((await say(loop.token)).status).toBe(429);
  });
});

describe('a limit of ten calls a minute', () => {
  const LIMITED = [
    ['key', (limits: KeyPatch, key: TestKey) => changeKey(gateway.db, cli(), key.id, limits, Date.now())],
    ['member', (limits: KeyPatch) => changeMember(gateway.db, cli(), gateway.memberId, limits, Date.now())],
    ['project', (limits: KeyPatch) => changeProject(gateway.db, cli(), gateway.firstRun.projectId, limits, Date.now())],
    ['organization', (limits: KeyPatch) => changeOrganization(gateway.db, cli(), limits, Date.now())],
  ] as const;

  it.each(LIMITED)('of a %s lets exactly ten of 64 requests at the same moment pass', async (scope, limit) => {
    await start();
    const key = addKey(gateway);
    limit({ requestsPerMinute: 10 }, key);

    expect(await atOnce(64, () => ask(key.token))).toEqual({ 200: 10, 429: 54 });
    const refused = await ask(key.token);
    const whose = {
      key: 'This API key',
      member: 'The owner',
      project: 'The project',
      organization: 'Your organization',
    };
    expect(errorOf(refused)).toMatchObject({
      code: 'rate_limit_exceeded',
      message: expect.stringMatching(
        new RegExp(`^${whose[scope]}.* 10 requests of this minute. Try again in \\d+ s.$`),
      ),
    });
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    expect([refused.headers['x-ratelimit-limit-requests'], refused.headers['x-ratelimit-remaining-requests']]).toEqual([
      '10',
      '0',
    ]);
  });

  it.each(LIMITED)('of a %s counts tools of MCP, images and moderations too', async (_, limit) => {
    await start();
    const key = addKey(gateway);
    limit({ requestsPerMinute: 3 }, key);

    const { token } = key;
    const answers = [
      await callTool(gateway, 'chat', SAY, { token }),
      await draw(gateway, fox(), { token }),
      await moderate(gateway, { input: 'x' }, { token }),
      await ask(token),
    ];

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    const tool = toolResultOf(await callTool(gateway, 'chat', SAY, { token }));
    expect([tool.isError, tool.content[0]?.text]).toEqual([true, expect.stringContaining('requests of this minute')]);
  });

  it('of a member is exact over keys, and that of a colleague is apart', async () => {
    await start();
    const keys = Array.from({ length: 8 }, () => addKey(gateway));
    const colleague = newcomer('colleague');
    changeMember(gateway.db, cli(), gateway.memberId, { requestsPerMinute: 10 }, Date.now());

    const [own, other] = await Promise.all([
      atOnce(64, (index) => ask(keys[index % 8]?.token ?? '')),
      atOnce(16, () => ask(colleague.token)),
    ]);

    expect([own, other]).toEqual([{ 200: 10, 429: 54 }, { 200: 16 }]);
  });

  it('holds as it was changed from the next call on, also when it is raised or removed', async () => {
    await start();
    const key = addKey(gateway, { requestsPerMinute: 1 });
    const change = (requestsPerMinute: number | null) =>
      changeKey(gateway.db, cli(), key.id, { requestsPerMinute }, Date.now());
    const seen = [(await ask(key.token)).status, (await ask(key.token)).status];
    for (const limit of [2, 1, null]) {
      change(limit);
      seen.push((await ask(key.token)).status);
    }

    expect(seen).toEqual([200, 429, 200, 429, 200]);
  });

  it('is not lifted by a clock that is set back or forth, and no header goes below nothing', async () => {
    const clock = new ManualClock('2026-01-31T12:00:00.000Z');
    await start({}, { clock });
    const key = addKey(gateway, { requestsPerMinute: 2 }, null, clock.now());
    const answers = [await ask(key.token), await ask(key.token)];
    for (const hours of [-1, 2]) {
      clock.advance(hours * 3_600_000);
      answers.push(await ask(key.token));
    }

    expect(answers.map(({ status, headers }) => [status, headers['x-ratelimit-remaining-requests']])).toEqual([
      [200, '1'],
      [200, '0'],
      [429, '0'],
      [429, '0'],
    ]);
  });

  it('is taken by no request that another limit refuses', async () => {
    await start();
    const key = addKey(gateway, { requestsPerMinute: 1 });
    changeProject(gateway.db, cli(), gateway.firstRun.projectId, { requestsPerMinute: 10 }, Date.now());
    const loop = await atOnce(50, () => ask(key.token));

    const colleague = newcomer('colleague');
    const answer = await ask(colleague.token);

    expect([loop, answer.headers['x-ratelimit-remaining-requests']]).toEqual([{ 200: 1, 429: 49 }, '8']);
  });
});

describe('a limit of tokens a minute', () => {
  const USED = { usage: { prompt_tokens: 600, completion_tokens: 400, total_tokens: 1000 } };
  const told = ({ status, headers }: Answer) => [
    status,
    headers['x-ratelimit-limit-tokens'],
    headers['x-ratelimit-remaining-tokens'],
  ];

  it('refuses the next call once its tokens are used, and the 429 says so', async () => {
    await start();
    upstream.begin(json(completion('Hello', USED)));
    const key = addKey(gateway, { tokensPerMinute: 1500 });

    const answers = [await ask(key.token), await ask(key.token), await ask(key.token)];

    expect(answers.map(told)).toEqual([
      [200, '1500', '1500'],
      [200, '1500', '500'],
      [429, '1500', '0'],
    ]);
    expect(answers[2]?.json).toMatchObject({
      error: {
        message: expect.stringMatching(/^This API key has used its 1500 tokens of this minute\. Try again in \d+ s\.$/),
      },
    });
  });

  it('counts streams that run side by side when each ends, and refuses the next one', async () => {
    await start();
    upstream.begin(async (response) => {
      writeEvents(response, chunk({ content: 'Hello' }), chunk({}, 'stop'), { ...USAGE_CHUNK, ...USED });
      await sleep(50);
      writeEvents(response, '[DONE]');
      response.end();
    });
    const key = addKey(gateway, { tokensPerMinute: 1500 });

    expect(await atOnce(8, () => ask(key.token, { stream: true }))).toEqual({ 200: 8 });
    expect(told(await ask(key.token))).toEqual([429, '1500', '0']);
  });

  it('counts a stream that its client has left', async () => {
    await start();
    upstream.begin((response) => writeEvents(response, chunk({ content: 'Hello' })));
    const key = addKey(gateway, { tokensPerMinute: 1 });
    const abort = new AbortController();
    const left = fetch(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(hello({ model: 'acme/large', stream: true })),
      signal: abort.signal,
    }).then((response) => response.text());
    await sleep(300);
    abort.abort();
    await left.catch(() => undefined);

    await expect.poll(() => callRows(gateway).map(({ state }) => state), { timeout: 20_000 }).toEqual(['settled']);
    expect((await ask(key.token)).status).toBe(429);
  });

  it('of an organization leaves a colleague their share, though a loop has used them up', async () => {
    await start();
    upstream.begin(json(completion('Hello', USED)));
    changeOrganization(gateway.db, cli(), { tokensPerMinute: 2000 }, Date.now());
    const [loop, colleague] = [newcomer('loop'), newcomer('colleague')];
    for (let call = 0; call < 2; call += 1) await ask(loop.token);

    expect([told(await ask(loop.token)), told(await ask(colleague.token)), told(await ask(colleague.token))]).toEqual([
      [429, '2000', '0'],
      [200, '2000', '1000'],
      [429, '2000', '0'],
    ]);
  });
});

describe('a developer', () => {
  const asDeveloper = (memberId: string): Actor => ({
    kind: 'person',
    organizationId: gateway.firstRun.organizationId,
    memberId,
    role: 'developer',
  });
  const REFUSED = expect.objectContaining({ status: 403 });

  it('lowers what their key may take in a minute, and raises or removes it in no way', async () => {
    await start();
    const { id, memberId } = newcomer('dev', { requestsPerMinute: 10 });
    const change = (patch: KeyPatch) => changeKey(gateway.db, asDeveloper(memberId), id, patch, Date.now()).key;

    expect(change({ requestsPerMinute: 5, tokensPerMinute: 100 })).toMatchObject({
      requestsPerMinute: 5,
      tokensPerMinute: 100,
    });
    for (const patch of [
      { requestsPerMinute: 6 },
      { requestsPerMinute: null },
      { tokensPerMinute: 101 },
      { tokensPerMinute: null, description: 'Mine' },
    ]) {
      expect(() => change(patch)).toThrow(REFUSED);
    }
    expect(change({ description: 'Mine' })).toMatchObject({ requestsPerMinute: 5, tokensPerMinute: 100 });
  });

  it('makes no key that takes more in a minute than their most limited one, also once that is deleted', async () => {
    await start();
    const { id, memberId } = newcomer('dev', { requestsPerMinute: 10 });
    const [pepper] = loadSecrets(gateway.dataDir, { create: false }).peppers;
    const make = (wanted: object) =>
      createKey(
        gateway.db,
        asDeveloper(memberId),
        { projectId: gateway.firstRun.projectId, ...wanted },
        { now: Date.now(), pepper },
      ).key;

    expect(() => make({ requestsPerMinute: 11 })).toThrow(REFUSED);
    expect(() => make({ requestsPerMinute: null })).toThrow(REFUSED);
    expect(make({})).toMatchObject({ requestsPerMinute: 10, tokensPerMinute: null });
    expect(make({ requestsPerMinute: 3, tokensPerMinute: 5 })).toMatchObject({
      requestsPerMinute: 3,
      tokensPerMinute: 5,
    });
    deleteKey(gateway.db, asDeveloper(memberId), id, Date.now());
    expect(() => make({ requestsPerMinute: 11 })).toThrow(REFUSED);
    expect(make({})).toMatchObject({ requestsPerMinute: 10, tokensPerMinute: null });
  });
});
