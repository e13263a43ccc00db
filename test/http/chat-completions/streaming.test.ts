// POST /v1/chat/completions with `stream`: server-sent events.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../src/domain/time.ts';
import { chat, errorOf, eventsOf, faulty, hello, streamedText } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { masked } from '../../support/masked.ts';
import { callRow } from '../../support/rows.ts';
import {
  chunk,
  events,
  startUpstream,
  type TestUpstream,
  USAGE,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

const NOW = Date.parse('2026-11-21T12:00:00Z');
let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = { ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), KEEP_ALIVE_COMMENT_MS: '40' };
  gateway = await startGateway(env, { clock: new ManualClock(NOW) });
});

beforeEach(() => upstream.begin(events(chunk({ role: 'assistant', content: 'Hi' }), chunk({}, 'stop'), USAGE_CHUNK)));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const streamed = (more: Readonly<Record<string, unknown>> = {}) => hello({ stream: true, ...more });
const fromUpstream = (more: Readonly<Record<string, unknown>> = {}) => streamed({ model: 'large', ...more });

describe('a stream', () => {
  it('has one id, one created and one model, the role in the first delta, and [DONE] at its end', async () => {
    const answer = await chat(gateway, streamed());

    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    const { chunks, done } = eventsOf(answer.text);
    const heads = new Set(chunks.map(({ id, created, model, object }) => [id, created, model, object].join(' ')));
    expect([...heads].map(masked)).toEqual([`<chatcmpl> ${NOW / 1000} sandbox-paid chat.completion.chunk`]);
    expect(chunks.map(({ choices }) => choices)).toEqual([
      [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'You ' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'said' }, finish_reason: null }],
      [{ index: 0, delta: { content: ': He' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'llo' }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'stop' }],
    ]);
    expect(done).toBe(true);
  });

  it('carries the ids of request and decision in its headers, and may not be cached or buffered', async () => {
    const { headers } = await chat(gateway, streamed(), { headers: [['x-request-id', 'own-1']] });

    const { date, connection, 'transfer-encoding': encoding, ...rest } = headers;
    expect(masked(rest)).toEqual({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-request-id': '<req>',
      'x-client-request-id': 'own-1',
      'x-decision-id': '<dec>',
      'x-policy-revision': expect.stringMatching(/^[0-9a-f]{12}\.0$/),
      'x-ratelimit-limit-requests': '600',
      'x-ratelimit-remaining-requests': expect.stringMatching(/^\d+$/),
      'x-ratelimit-reset-requests': expect.stringMatching(/^(1m0s|\d+s)$/),
    });
  });

  it('tells usage, cost and metadata on the chunk with the finish reason, held back until the upstream told its usage', async () => {
    const answer = await chat(gateway, fromUpstream());

    const { chunks } = eventsOf(answer.text);
    const row = callRow(gateway, answer);
    expect(chunks.map(({ usage, metadata }) => [usage?.cost, metadata?.log_id])).toEqual([
      [undefined, undefined],
      [0.00006, row.id],
    ]);
    expect(chunks.at(-1)?.choices).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
    expect([row.state, row.cost, row.stream, row.statusCode]).toEqual(['settled', 60_000_000n, 1, 200]);
  });

  it('tells them in an extra chunk without choices when include_usage is set, and usage null before it', async () => {
    const answer = await chat(gateway, fromUpstream({ stream_options: { include_usage: true } }));

    const { chunks, done } = eventsOf(answer.text);
    expect(
      chunks.map(({ choices, usage, metadata }) => [choices.length, usage?.cost ?? usage, metadata?.used_provider]),
    ).toEqual([
      [1, null, undefined],
      [1, null, undefined],
      [0, 0.00006, 'acme'],
    ]);
    expect(done).toBe(true);
  });

  it('always asks the upstream for usage, besides the other options of the caller', async () => {
    await chat(gateway, fromUpstream());
    await chat(gateway, fromUpstream({ stream_options: { include_obfuscation: false } }));

    expect(upstream.received.map(({ json }) => json)).toMatchObject([
      { stream_options: { include_usage: true } },
      { stream_options: { include_usage: true, include_obfuscation: false } },
    ]);
  });

  it.each([
    ['in a chunk with choices', [chunk({ content: 'Hi' }), chunk({}, 'stop', { usage: USAGE })]],
    [
      'in every chunk, the last one counting',
      [
        chunk({ content: 'Hi' }, null, { usage: { ...USAGE, completion_tokens: 1 } }),
        chunk({}, 'stop', { usage: { ...USAGE, completion_tokens: 3 } }),
        { ...USAGE_CHUNK, usage: USAGE },
      ],
    ],
  ])('takes usage %s', async (_, list) => {
    upstream.begin(events(...list));

    const { chunks } = eventsOf((await chat(gateway, fromUpstream())).text);

    expect(chunks.at(-1)?.usage).toMatchObject({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 });
  });

  it('estimates usage, and says so, when the upstream gave none', async () => {
    upstream.begin(events(chunk({ content: 'Hello, ' }), chunk({ content: 'world!' }), chunk({}, 'stop')));

    const answer = await chat(gateway, fromUpstream());

    expect(eventsOf(answer.text).chunks.at(-1)?.usage).toMatchObject({
      prompt_tokens: 8,
      completion_tokens: 4,
      info: 'The provider reported no usage: token counts are estimated.',
    });
    expect(callRow(gateway, answer).usageEstimated).toBe(1);
  });

  it('estimates thoughts as well', async () => {
    upstream.begin(events(chunk({ reasoning: 'Hello, world!' }), chunk({}, 'stop')));

    const answer = await chat(gateway, fromUpstream());

    expect(callRow(gateway, answer).completionTokens).toBe(4);
  });

  it('interleaves several choices, each with its role and its finish reason, and ends with the last', async () => {
    const { chunks } = eventsOf((await chat(gateway, streamed({ n: 2 }))).text);

    const choices = chunks.flatMap((each) => each.choices);
    expect(choices.filter(({ delta }) => delta.role === 'assistant').map(({ index }) => index)).toEqual([0, 1]);
    expect(choices.filter(({ finish_reason: reason }) => reason !== null).map(({ index }) => index)).toEqual([0, 1]);
    expect([streamedText(chunks, 0), streamedText(chunks, 1)]).toEqual(['You said: Hello', 'You said (2): Hello']);
    expect(chunks.filter(({ usage }) => usage !== undefined)).toEqual([chunks.at(-1)]);
  });

  it('streams the calls of tools, arguments in pieces', async () => {
    const tools = [{ type: 'function', function: { name: 'weather', parameters: { type: 'object' } } }];
    const body = streamed({ messages: [{ role: 'user', content: 'weather' }], tools });

    const { chunks } = eventsOf((await chat(gateway, body)).text);

    const [first] = chunks.flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
    expect(first).toEqual({
      index: 0,
      id: 'call_1_0',
      type: 'function',
      function: { name: 'weather', arguments: '{}' },
    });
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('tool_calls');
  });
});

describe('a stream that fails', () => {
  it.each([
    ['cut', 'The connection to the provider failed: it could not be made or was cut.'],
    ['malformed', 'The provider sent a malformed chunk.'],
    ['error', 'The provider reported an error inside a successful answer.'],
  ])('after its first byte (%s) is told in band and closed without [DONE]', async (fault, message) => {
    const answer = await chat(gateway, faulty(fault, { stream: true }));

    expect(answer.status).toBe(200);
    const { chunks, done, error } = eventsOf(answer.text);
    expect([streamedText(chunks), done]).toEqual(['So f', false]);
    expect(error).toEqual({ message, type: 'api_error', param: null, code: 'upstream_error' });
    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.errorCode, row.cost]).toEqual(['settled', 502, 'upstream_error', 0n]);
  });

  it('is never ended as if it were whole when the upstream ends without a finish reason', async () => {
    upstream.begin(events(chunk({ content: 'Hi' })));

    const { done, error } = eventsOf((await chat(gateway, fromUpstream())).text);

    expect([done, error?.message]).toEqual([false, "The provider's stream was cut off."]);
  });

  it('is charged what the provider itself had reported until then', async () => {
    upstream.begin((response) => {
      writeEvents(response, chunk({ content: 'Hi' }, null, { usage: USAGE }));
      response.end();
    });

    const answer = await chat(gateway, fromUpstream());

    expect([eventsOf(answer.text).error?.code, callRow(gateway, answer).cost]).toEqual(['upstream_error', 60_000_000n]);
  });

  it('before its first byte has a status of its own', async () => {
    const answer = await chat(gateway, faulty('empty', { stream: true }));

    expect([answer.status, errorOf(answer).message]).toEqual([502, 'The provider sent an empty stream.']);
    expect(answer.headers['x-should-retry']).toBe('false');
  });
});

describe('a quiet stream', () => {
  it('is kept alive by comments, the first of which commits the status', async () => {
    upstream.begin(async (response) => {
      await sleep(150);
      await events(
        chunk({ content: 'Hi' }),
        chunk({}, 'stop'),
        USAGE_CHUNK,
      )(response, { path: '', headers: {}, text: '', json: null });
    });

    const answer = await chat(gateway, fromUpstream());

    const { comments, chunks, done } = eventsOf(answer.text);
    expect(new Set(comments)).toEqual(new Set([': keep-alive']));
    expect([answer.status, streamedText(chunks), done]).toEqual([200, 'Hi', true]);
    expect(answer.text.startsWith(': keep-alive\n\n')).toBe(true);
  });

  it('tells a final failure in band once a comment was sent', async () => {
    upstream.begin(async (response) => {
      await sleep(150);
      response.destroy();
    });

    const answer = await chat(gateway, fromUpstream());

    const { error, chunks, done } = eventsOf(answer.text);
    expect([answer.status, chunks, done, error?.code]).toEqual([200, [], false, 'upstream_error']);
    expect(callRow(gateway, answer).statusCode).toBe(502);
  });
});
