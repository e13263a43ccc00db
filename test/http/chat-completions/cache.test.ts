// POST /v1/chat/completions: answers that are given again (src/core/README.md, "cache").
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { updateProject } from '../../../src/store/tenants/tenants.ts';
import { chat, completionOf, eventsOf, hello, streamedText } from '../../support/chat.ts';
import { addKey, addRule, startGateway, type TestGateway } from '../../support/gateway.ts';
import type { Answer } from '../../support/request.ts';
import { callRow, callRows, keySums } from '../../support/rows.ts';
import {
  chunk,
  completion,
  events,
  failure,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

let clock: ManualClock;
let upstream: TestUpstream;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new ManualClock('2026-11-21T12:00:00Z');
  upstream = await startUpstream();
  upstream.begin(json(completion('Once')));
  const env = {
    ...upstreamEnv('acme', upstream.origin, 'large,other', 'large=1/1,other=1/1'),
    ...upstreamEnv('zeta', upstream.origin, 'large', 'large=2/2'),
  };
  gateway = await startGateway(env, { clock, caching: true });
});

afterEach(async () => {
  await gateway.close();
  await upstream.close();
});

const large = (more: Readonly<Record<string, unknown>> = {}) => hello({ model: 'acme/large', ...more });
const isHit = ({ headers }: Answer): boolean => headers['x-cache'] === 'HIT';

/** Sends one after the other; tells which came from the cache. */
async function hits(...sends: (() => Promise<Answer>)[]): Promise<boolean[]> {
  const answers: Answer[] = [];
  for (const send of sends) answers.push(await send());
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  return answers.map(isHit);
}

const ask =
  (body: object = large(), options: Parameters<typeof chat>[2] = {}) =>
  () =>
    chat(gateway, body, options);

const setProject = (changes: Parameters<typeof updateProject>[3]): void => {
  updateProject(gateway.db, gateway.firstRun.organizationId, gateway.firstRun.projectId, changes, clock.now());
};

describe('an equal request', () => {
  it('is answered again under an id of its own, at no cost, without asking a provider', async () => {
    const first = completionOf(await chat(gateway, large()));
    const answer = await chat(gateway, large());

    const second = completionOf(answer);
    const row = callRow(gateway, answer);
    const { cost, cost_details, ...counts } = second.usage;
    const { cost: _, cost_details: __, ...firstCounts } = first.usage;
    expect([isHit(answer), upstream.received.length, second.id === first.id]).toEqual([true, 1, false]);
    expect(second.choices).toEqual(first.choices);
    expect([cost, new Set(Object.values(cost_details ?? {})), counts]).toEqual([0, new Set([0]), firstCounts]);
    expect(second.metadata).toEqual({
      ...first.metadata,
      request_id: answer.headers['x-request-id'],
      log_id: row.id,
      cached: true,
      routing: [],
    });
    expect(row).toMatchObject({
      state: 'settled',
      cached: 1,
      cost: 0n,
      providerId: 'acme',
      modelId: 'large',
      statusCode: 200,
    });
    expect(answer.headers['x-decision-id']).toBe(row.decisionId);
  });

  it('is streamed again, chunk by chunk', async () => {
    const tool = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    upstream.begin(
      events(
        chunk({ role: 'assistant', content: '' }, null, { system_fingerprint: 'fp' }),
        chunk({ content: 'On' }, null, { system_fingerprint: 'fp' }),
        chunk({ content: 'ce' }, null, { system_fingerprint: 'fp' }),
        chunk({ tool_calls: [tool] }),
        chunk({}, 'tool_calls'),
        USAGE_CHUNK,
      ),
    );
    const body = large({ stream: true });
    const first = eventsOf((await chat(gateway, body)).text);
    const answer = await chat(gateway, body);

    const second = eventsOf(answer.text);
    const said = ({ chunks }: typeof first) => chunks.map(({ choices, system_fingerprint: mark }) => [choices, mark]);
    expect([isHit(answer), upstream.received.length, streamedText(second.chunks)]).toEqual([true, 1, 'Once']);
    expect(said(second)).toEqual(said(first));
    expect(new Set(second.chunks.map(({ id }) => id)).size).toBe(1);
    expect(second.chunks.at(-1)).toMatchObject({ usage: { cost: 0, prompt_tokens: 10 }, metadata: { cached: true } });
    expect(second.chunks.slice(0, -1).filter(({ usage }) => usage !== undefined)).toEqual([]);
  });

  it('is streamed again with its usage in a chunk of its own, where that is asked for', async () => {
    const body = hello({ stream: true, stream_options: { include_usage: true } });
    const first = eventsOf((await chat(gateway, body)).text);
    const second = eventsOf((await chat(gateway, body)).text);

    const shape = ({ chunks }: typeof first) => chunks.map(({ choices, usage }) => [choices.length, usage === null]);
    expect(shape(second)).toEqual(shape(first));
    expect(second.chunks.at(-1)).toMatchObject({ choices: [], usage: { cost: 0 }, metadata: { cached: true } });
  });

  it('is asked again when the time of the project is over, and not a millisecond before', async () => {
    setProject({ cacheDurationSeconds: 10 });
    await chat(gateway, large());
    clock.advance(9_999);
    expect(await hits(ask())).toEqual([true]);
    clock.advance(1);
    expect(await hits(ask(), ask())).toEqual([false, true]);
  });

  it('books nothing on a key with a limit; one that has spent it is still refused', async () => {
    const { token, id } = addKey(gateway, { usageLimit: '0.0001' }, null, clock.now());
    const asked = large({ max_tokens: 5 });
    expect(await hits(ask(asked, { token }), ask(asked, { token }))).toEqual([false, true]);
    expect(keySums(gateway, id)).toMatchObject({ usage: 15_000_000n, reserved: 0n });
    gateway.db.connection.prepare('UPDATE keys SET usageLimit = usage WHERE id = ?').run(id);
    expect((await chat(gateway, asked, { token })).status).toBe(401);
  });
});

describe('it is not given again', () => {
  it.each([
    ['for another body, however little it differs', large({ user: 'x' })],
    ['to a streaming caller', large({ stream: true })],
    ['for another model', hello({ model: 'acme/other' })],
  ])('%s', async (_, other) => {
    upstream.begin((response, { json: sent }) => {
      const streams = typeof sent === 'object' && sent !== null && 'stream' in sent;
      (streams ? events(chunk({ content: 'x' }, 'stop'), USAGE_CHUNK) : json(completion('Once')))(response, {
        path: '',
        headers: {},
        text: '',
        json: sent,
      });
    });
    expect(await hits(ask(), ask(other))).toEqual([false, false]);
  });

  it('where the caller says x-no-cache, nor is the answer kept', async () => {
    const refused = { headers: [['x-no-cache', 'true']] as const };
    expect(await hits(ask(large(), refused), ask(), ask(large(), refused))).toEqual([false, false, false]);
  });

  it('when it is too large, whichever of its fields is', async () => {
    upstream.begin(json(completion('Once', { x_more: 'x'.repeat(9_000_000) })));

    expect(await hits(ask(), ask())).toEqual([false, false]);
  });

  it('where the project does not keep answers, from the next call on', async () => {
    await chat(gateway, large());
    setProject({ cachingEnabled: false });
    expect(await hits(ask(), ask())).toEqual([false, false]);
  });

  it('to a key that the policy refuses it', async () => {
    await chat(gateway, large());
    addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['large'] } });
    expect((await chat(gateway, large())).status).toBe(403);
  });

  it('from a mapping that this key may not call: the one that it may call answers', async () => {
    await chat(gateway, hello({ model: 'large' }));
    const other = addKey(gateway, {}, null, clock.now());
    addRule({ ...gateway, keyId: other.id }, 'key', {
      ruleType: 'deny_providers',
      ruleValue: { providers: ['acme'] },
    });
    const answer = await chat(gateway, hello({ model: 'large' }), { token: other.token });
    expect([isHit(answer), completionOf(answer).metadata.used_provider]).toEqual([false, 'zeta']);
    expect(await hits(ask(hello({ model: 'large' })))).toEqual([true]);
  });

  it.each([
    ['a failure', failure(500, 'x'), 502],
    ['an empty answer', json({ choices: [] }), 502],
  ])('when it is %s', async (_, reply, status) => {
    upstream.begin(reply);
    expect((await chat(gateway, large())).status).toBe(status);
    upstream.begin(json(completion('Once')));
    expect(await hits(ask(), ask())).toEqual([false, true]);
  });

  it('when it is a stream that broke, or whose reader left', async () => {
    const body = large({ stream: true });
    upstream.begin((response) => {
      writeEvents(response, chunk({ content: 'On' }));
      response.write('', () => response.destroy());
    });
    expect(eventsOf((await chat(gateway, body)).text).error).toBeDefined();
    upstream.begin(events(chunk({ content: 'Once' }, 'stop'), USAGE_CHUNK));
    expect(await hits(ask(body), ask(body))).toEqual([false, true]);
  });

  it('to another project', async () => {
    await chat(gateway, large());
    const { organizationId } = gateway.firstRun;
    gateway.db.connection
      .prepare(
        "INSERT INTO projects (id, organizationId, name, createdAt, updatedAt) VALUES ('proj_2', ?, 'Two', 1, 1)",
      )
      .run(organizationId);
    const other = addKey(gateway, { projectId: 'proj_2' }, null, clock.now());
    expect(await hits(ask(large(), { token: other.token }))).toEqual([false]);
  });
});

it('another key of the project may be given it', async () => {
  await chat(gateway, large());
  const other = addKey(gateway, {}, null, clock.now());
  expect(await hits(() => chat(gateway, large(), { token: other.token }))).toEqual([true]);
  expect(callRows(gateway).map(({ keyId, cached }) => [keyId, cached])).toEqual([
    [gateway.keyId, 0],
    [other.id, 1],
  ]);
});
