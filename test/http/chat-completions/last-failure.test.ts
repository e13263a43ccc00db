// POST /v1/chat/completions: what the last failure of the providers tells a caller, so that their client can act on it.
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chat, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import {
  chunk,
  completion,
  failure,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

let first: TestUpstream;
let second: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  first = await startUpstream();
  second = await startUpstream();
});

beforeEach(async () => {
  await gateway?.close();
  gateway = await startGateway({
    ...upstreamEnv('first', first.origin, 'shared', 'shared=1/1'),
    ...upstreamEnv('second', second.origin, 'shared', 'shared=2/2'),
    ANTHROPIC_API_KEY: 'sk-ant',
    ANTHROPIC_BASE_URL: first.origin,
    GOOGLE_API_KEY: 'AIza',
    GOOGLE_BASE_URL: first.origin,
    OPENROUTER_API_KEY: 'sk-or',
    OPENROUTER_BASE_URL: `${second.origin}/v1`,
  });
});

afterAll(async () => {
  await gateway.close();
  await first.close();
  await second.close();
});

const saying =
  (
    status: number,
    headers: Readonly<Record<string, string>>,
    body: object = { error: { message: 'Slow down.' } },
  ): Reply =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };

describe('a provider that limits the rate, when none is left', () => {
  it('is 429 with the shortest wait that any provider asked for, and may be retried', async () => {
    first.begin(saying(429, { 'retry-after': '7' }));
    second.begin(saying(429, { 'retry-after': '30' }));

    const answer = await chat(gateway, hello({ model: 'shared' }));

    expect([answer.status, errorOf(answer), answer.headers['retry-after'], answer.headers['x-should-retry']]).toEqual([
      429,
      {
        message: 'The provider limits the rate of calls: Slow down.',
        type: 'rate_limit_error',
        param: null,
        code: 'upstream_rate_limited',
      },
      '7',
      undefined,
    ]);
  });

  it('asks for a second where nobody says how long', async () => {
    first.begin(failure(429, 'x'));

    expect((await chat(gateway, hello({ model: 'first/shared' }))).headers['retry-after']).toBe('1');
  });

  it('is tried again by the openai package, which then succeeds', async () => {
    let calls = 0;
    first.begin((response, received) => {
      calls += 1;
      return calls === 1
        ? saying(429, { 'retry-after-ms': '20' })(response, received)
        : json(completion('Hi'))(response, received);
    });
    const client = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: gateway.firstRun.gatewayKey });

    const answer = await client.chat.completions.create({
      model: 'first/shared',
      messages: [{ role: 'user', content: 'Hi' }],
    });

    expect([answer.choices[0]?.message.content, calls]).toEqual(['Hi', 2]);
  });

  it('is an error event once a stream has begun', async () => {
    first.begin((response) => {
      writeEvents(response, chunk({ content: 'He' }), { error: { message: 'x', code: 429 } });
      response.end();
    });

    const { error } = eventsOf((await chat(gateway, hello({ model: 'first/shared', stream: true }))).text);

    expect([error?.type, error?.code]).toEqual(['rate_limit_error', 'upstream_rate_limited']);
  });
});

describe('a provider that is overloaded, when none is left', () => {
  it.each([503, 529])('is 503 with retry-after, and may be retried: %i', async (status) => {
    first.begin(saying(status, { 'retry-after': '3' }));

    const answer = await chat(gateway, hello({ model: 'first/shared' }));

    expect([
      answer.status,
      errorOf(answer).code,
      answer.headers['retry-after'],
      answer.headers['x-should-retry'],
    ]).toEqual([503, 'upstream_overloaded', '3', undefined]);
  });

  it('keeps the wait that an earlier provider asked for', async () => {
    first.begin(saying(429, { 'retry-after': '2' }));
    second.begin(saying(503, {}));

    const answer = await chat(gateway, hello({ model: 'shared' }));

    expect([answer.status, answer.headers['retry-after']]).toEqual([503, '2']);
  });
});

describe('any other failure', () => {
  it.each([500, 502, 404, 401])('is final: a retry would be futile after %i', async (status) => {
    first.begin(failure(status, 'x'));

    const answer = await chat(gateway, hello({ model: 'first/shared' }));

    expect([answer.status, answer.headers['x-should-retry'], answer.headers['retry-after']]).toEqual([
      502,
      'false',
      undefined,
    ]);
  });
});

describe('a provider that says how long it wants to rest', () => {
  it('rests that long, after the first such answer: the next call goes to another one first', async () => {
    first.begin(saying(429, { 'retry-after': '60' }));
    second.begin(json(completion('Hi')));
    await chat(gateway, hello({ model: 'shared' }));
    first.begin(json(completion('Hi')));
    second.begin(json(completion('Hi')));

    await chat(gateway, hello({ model: 'shared', user: 'two' }));

    expect([first.received.length, second.received.length]).toEqual([0, 1]);
  });

  it('does so too when it says it in the middle of a stream', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '60s' }];
    first.begin((response) => {
      const said = { candidates: [{ content: { parts: [{ text: 'He' }] } }] };
      writeEvents(response, said, { error: { code: 429, status: 'RESOURCE_EXHAUSTED', details } });
      response.end();
    });
    second.begin(json(completion('Hi')));
    const streamed = eventsOf((await chat(gateway, hello({ model: 'gemini-2.5-flash', stream: true }))).text);

    const answer = await chat(gateway, hello({ model: 'gemini-2.5-flash' }));

    expect([streamed.error?.code, first.received.length]).toEqual(['upstream_rate_limited', 1]);
    expect([answer.status, second.received.length]).toEqual([200, 1]);
  });
});

describe('a request that the provider rejects', () => {
  const rejecting = (error: object): Reply => saying(400, {}, { error });

  it.each([
    ['context_length_exceeded', 'messages'],
    ['invalid_value', 'messages[0].content'],
    ['unsupported_value', 'temperature'],
    ['invalid_image_url', null],
  ])('keeps the code and param that clients act on: %s', async (code, param) => {
    first.begin(rejecting({ message: 'No.', type: 'invalid_request_error', code, param }));

    const answer = await chat(gateway, hello({ model: 'first/shared' }));

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      { message: 'The provider rejected the request: No.', type: 'invalid_request_error', param, code },
    ]);
  });

  it.each([
    ['some_word_of_its_own', 'messages'],
    ['<script>', 'messages'],
    [42, 'messages'],
  ])('with a code that is not OpenAI’s has ours: %s', async (code, param) => {
    first.begin(rejecting({ message: 'No.', code, param }));

    expect(errorOf(await chat(gateway, hello({ model: 'first/shared' })))).toMatchObject({
      code: 'invalid_request',
      param: null,
    });
  });

  it.each<[string, object]>([
    ['first/shared', { error: { message: "This model's maximum context length is 8192 tokens." } }],
    [
      'first/shared',
      { error: { message: 'the request exceeds the available context size', type: 'exceed_context_size_error' } },
    ],
    [
      'anthropic/claude-sonnet-4-6',
      {
        type: 'error',
        error: { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' },
      },
    ],
    [
      'google/gemini-2.5-flash',
      {
        error: {
          code: 400,
          status: 'INVALID_ARGUMENT',
          message: 'The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).',
        },
      },
    ],
  ])('because it is too long says so in OpenAI’s words: %s, %j', async (model, body) => {
    first.begin(saying(400, {}, body));

    const answer = await chat(gateway, hello({ model }));

    expect([answer.status, errorOf(answer).code, errorOf(answer).param]).toEqual([
      400,
      'context_length_exceeded',
      'messages',
    ]);
  });
});
