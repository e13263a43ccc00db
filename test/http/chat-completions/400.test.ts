// POST /v1/chat/completions: a body that is no chat request, or that the provider rejects.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chat, errorOf, faulty, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow, callRows } from '../../support/rows.ts';
import { failure, startUpstream, type TestUpstream, upstreamEnv } from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    ...upstreamEnv('cheap', upstream.origin, 'shared', 'shared=1/1'),
    ...upstreamEnv('dear', upstream.origin, 'shared', 'shared=2/2'),
  });
});

beforeEach(() => upstream.begin(failure(400, 'Temperature is too high.')));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const user = { role: 'user', content: 'Hello' };

describe('a request that is no chat request', () => {
  it.each([
    ['/model', 'a missing model', { messages: [user] }],
    ['/model', 'a model that is no text', hello({ model: 1 })],
    ['/messages', 'missing messages', { model: 'sandbox-paid' }],
    ['/messages', 'no message', hello({ messages: [] })],
    ['/messages', 'messages that are no list', hello({ messages: 'Hello' })],
    ['/messages/0', 'a message that is no object', hello({ messages: ['Hello'] })],
    ['/messages/1/role', 'a message without a role', hello({ messages: [user, { content: 'x' }] })],
    ['/messages/0/role', 'an unknown role', hello({ messages: [{ role: 'robot', content: 'x' }] })],
    ['/messages/0/content', 'a user message without content', hello({ messages: [{ role: 'user' }] })],
    [
      '/messages/0/content/0/text',
      'a text part without text',
      hello({ messages: [{ role: 'user', content: [{ type: 'text' }] }] }),
    ],
    ['/temperature', 'too high a temperature', hello({ temperature: 2.5 })],
    ['/n', 'more than eight choices', hello({ n: 9 })],
    ['/n', 'no choice', hello({ n: 0 })],
    ['/max_tokens', 'a fraction of a token', hello({ max_tokens: 1.5 })],
    ['/stream', 'a stream flag that is a text', hello({ stream: 'true' })],
    ['/stream_options/include_usage', 'a usage flag that is a number', hello({ stream_options: { include_usage: 1 } })],
    ['/tools/0/function', 'a tool without its function', hello({ tools: [{ type: 'function' }] })],
    ['', 'a list', [hello()]],
    ['', 'a text', '"Hello"'],
    ['', 'null', 'null'],
  ])('names the place of its first fault: %s for %s', async (param, _, body) => {
    const answer = await chat(gateway, body);

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      { message: expect.any(String), type: 'invalid_request_error', param, code: 'invalid_request' },
    ]);
    expect(errorOf(answer).message.startsWith(param === '' ? 'The request body ' : `${param} `)).toBe(true);
  });

  it('is neither decided nor recorded', async () => {
    const before = callRows(gateway).length;

    const answer = await chat(gateway, hello({ n: 9 }));

    expect(callRows(gateway)).toHaveLength(before);
    expect('x-decision-id' in answer.headers).toBe(false);
  });

  it('takes an optional field that is null as absent', async () => {
    const answer = await chat(gateway, hello({ temperature: null, n: null, tools: null, stream: null }));

    expect(answer.status).toBe(200);
  });
});

describe('a request that the provider rejects', () => {
  it("is answered with the provider's words, recorded, and never tried elsewhere", async () => {
    const answer = await chat(gateway, hello({ model: 'shared' }));

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      {
        message: 'The provider rejected the request: Temperature is too high.',
        type: 'invalid_request_error',
        param: null,
        code: 'invalid_request',
      },
    ]);
    expect(upstream.received).toHaveLength(1);
    const { state, statusCode, errorCode, cost, attemptsJson } = callRow(gateway, answer);
    expect([state, statusCode, errorCode, cost]).toEqual(['settled', 400, 'invalid_request', 0n]);
    expect(JSON.parse(attemptsJson ?? '')).toMatchObject([
      { provider: 'cheap', status_code: 400, error_type: 'rejected', succeeded: false },
    ]);
  });

  it.each([413, 422])('is a 400 of ours for its %i too', async (status) => {
    const answer = await chat(gateway, faulty(String(status)));

    expect([answer.status, errorOf(answer).code]).toEqual([400, 'invalid_request']);
  });

  it('never shows what looks like a credential', async () => {
    upstream.begin(failure(400, 'Bad request with key sk-abcdefghijklmnop and Bearer secret-of-cheap.'));

    const answer = await chat(gateway, hello({ model: 'shared' }));

    expect(errorOf(answer).message).toBe(
      'The provider rejected the request: Bad request with key [redacted] and [redacted]',
    );
  });
});
