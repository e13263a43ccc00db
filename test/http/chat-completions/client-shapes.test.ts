// POST /v1/chat/completions: the shapes that clients read, whatever the provider sends.
import OpenAI from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const env = {
    ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'),
    ANTHROPIC_API_KEY: 'sk-ant',
    ANTHROPIC_BASE_URL: upstream.origin,
    GOOGLE_API_KEY: 'AIza',
    GOOGLE_BASE_URL: upstream.origin,
  };
  gateway = await startGateway(env, { caching: true });
});

beforeEach(() => upstream.begin(json(completion('Hi'))));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const call = (index: number, name: string) => ({
  index,
  id: `call_${index}`,
  type: 'function',
  function: { name, arguments: '{}' },
});

const choicesOf = async (body: object) =>
  eventsOf((await chat(gateway, body)).text).chunks.map(({ choices }) =>
    choices.map(({ index, delta, finish_reason }) => ({ index, delta, finish_reason })),
  );

describe('a stream', () => {
  it('has one tool call in a delta, whatever the provider sends', async () => {
    const delta = { role: 'assistant', content: null, tool_calls: [call(0, 'a'), call(1, 'b'), call(2, 'c')] };
    upstream.begin(events(chunk(delta, 'tool_calls'), USAGE_CHUNK));

    expect(await choicesOf(hello({ model: 'large', stream: true, user: 'one call' }))).toEqual([
      [{ index: 0, delta: { ...delta, tool_calls: [call(0, 'a')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [call(1, 'b')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [call(2, 'c')] }, finish_reason: 'tool_calls' }],
    ]);
  });

  it('has one choice in a chunk, whatever the provider sends', async () => {
    const both = (delta: object, finish_reason: string | null) => ({
      ...chunk({}),
      choices: [0, 1].map((index) => ({ index, delta, finish_reason })),
    });
    upstream.begin(events(both({ content: 'Hi' }, null), both({}, 'stop'), USAGE_CHUNK));

    expect(await choicesOf(hello({ model: 'large', stream: true, n: 2 }))).toEqual([
      [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }],
      [{ index: 1, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'stop' }],
      [{ index: 1, delta: {}, finish_reason: 'stop' }],
    ]);
  });

  it('is put together by the openai package without losing a call', async () => {
    upstream.begin(events(chunk({ tool_calls: [call(0, 'a'), call(1, 'b')] }), chunk({}, 'tool_calls'), USAGE_CHUNK));
    const client = new OpenAI({ baseURL: `${gateway.origin}/v1`, apiKey: gateway.firstRun.gatewayKey });

    const { choices } = await client.chat.completions
      .stream({ model: 'large', messages: [{ role: 'user', content: 'two calls' }] })
      .finalChatCompletion();

    expect(choices[0]?.message.tool_calls?.map((made) => made.type === 'function' && made.function.name)).toEqual([
      'a',
      'b',
    ]);
  });

  it('is the same when it comes from the cache', async () => {
    const body = hello({ model: 'large', stream: true, user: 'cached' });
    upstream.begin(
      events(chunk({ reasoning: 'Hm.', tool_calls: [call(0, 'a'), call(1, 'b')] }, 'tool_calls'), USAGE_CHUNK),
    );

    const [first, again] = [await choicesOf(body), await choicesOf(body)];

    expect([again, upstream.received.length]).toEqual([first, 1]);
  });
});

describe('a stream of another wire', () => {
  const CLAUDE = 'anthropic/claude-sonnet-4-6';
  const GEMINI = 'google/gemini-2.5-flash';
  const THOUGHT = { reasoning: 'Hm.', reasoning_content: 'Hm.' };

  const fragment = (index: number, name: string, text: string) => ({
    index,
    id: expect.any(String),
    type: 'function',
    function: { name, arguments: text },
  });

  it('Anthropic’s: thoughts under both names, one tool call in a delta, one choice in a chunk', async () => {
    const block = (index: number, content_block: object, delta: object) => [
      { type: 'content_block_start', index, content_block },
      { type: 'content_block_delta', index, delta },
      { type: 'content_block_stop', index },
    ];
    const tool = (index: number, name: string) =>
      block(
        index,
        { type: 'tool_use', id: `toolu_${index}`, name, input: {} },
        { type: 'input_json_delta', partial_json: '{}' },
      );
    upstream.begin((response) => {
      const usage = { input_tokens: 10, output_tokens: 5 };
      writeEvents(
        response,
        { type: 'message_start', message: { id: 'msg_1', model: 'claude-sonnet-4-6', content: [], usage } },
        ...block(0, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'Hm.' }),
        ...tool(1, 'a'),
        ...tool(2, 'b'),
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
        { type: 'message_stop' },
      );
      response.end();
    });

    const detail = { type: 'reasoning.text', text: 'Hm.', format: 'anthropic', index: 0 };
    expect(await choicesOf(hello({ model: CLAUDE, stream: true }))).toEqual([
      [{ index: 0, delta: { role: 'assistant', ...THOUGHT, reasoning_details: [detail] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [fragment(0, 'a', '')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [fragment(1, 'b', '')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [{ index: 1, function: { arguments: '{}' } }] }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'tool_calls' }],
    ]);
  });

  it('Google’s: thoughts under both names, one tool call in a delta, one choice in a chunk', async () => {
    const called = (name: string) => ({ functionCall: { name, args: {} } });
    const both = (parts: object[], more: object = {}) => ({
      candidates: [0, 1].map((index) => ({ index, content: { role: 'model', parts }, ...more })),
    });
    upstream.begin((response) => {
      writeEvents(
        response,
        both([{ text: 'Hm.', thought: true }]),
        both([called('a'), called('b')], { finishReason: 'STOP' }),
      );
      response.end();
    });

    expect(await choicesOf(hello({ model: GEMINI, stream: true, n: 2 }))).toEqual([
      [{ index: 0, delta: { role: 'assistant', ...THOUGHT }, finish_reason: null }],
      [{ index: 1, delta: { role: 'assistant', ...THOUGHT }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [fragment(0, 'a', '{}')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [fragment(1, 'b', '{}')] }, finish_reason: null }],
      [{ index: 1, delta: { tool_calls: [fragment(0, 'a', '{}')] }, finish_reason: null }],
      [{ index: 1, delta: { tool_calls: [fragment(1, 'b', '{}')] }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'tool_calls' }],
      [{ index: 1, delta: {}, finish_reason: 'tool_calls' }],
    ]);
  });

  it.each([
    [
      'Anthropic’s',
      CLAUDE,
      {
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 's' },
          { type: 'text', text: 'Hi' },
        ],
        stop_reason: 'end_turn',
      },
    ],
    ['Google’s', GEMINI, { candidates: [{ content: { parts: [{ text: 'Hm.', thought: true }, { text: 'Hi' }] } }] }],
  ])('%s whole answers have thoughts under both names too', async (_, model, answer) => {
    upstream.begin(json(answer));

    const { choices } = completionOf(await chat(gateway, hello({ model })));

    expect(choices[0]?.message).toMatchObject({ content: 'Hi', ...THOUGHT });
  });
});

describe('thoughts', () => {
  it.each([
    ['reasoning', { reasoning: 'Hm.' }],
    ['reasoning_content', { reasoning_content: 'Hm.' }],
  ])('stand under both names, whichever the provider uses: %s', async (_, thoughts) => {
    const message = { role: 'assistant', content: 'Hi', ...thoughts };
    upstream.begin(json(completion('', { choices: [{ index: 0, message, finish_reason: 'stop' }] })));
    const whole = completionOf(await chat(gateway, hello({ model: 'large', user: `whole ${_}` })));
    upstream.begin(events(chunk(thoughts), chunk({ content: 'Hi' }, 'stop'), USAGE_CHUNK));
    const [[first] = []] = await choicesOf(hello({ model: 'large', stream: true, user: `stream ${_}` }));

    expect(whole.choices[0]?.message).toMatchObject({ reasoning: 'Hm.', reasoning_content: 'Hm.' });
    expect(first?.delta).toMatchObject({ reasoning: 'Hm.', reasoning_content: 'Hm.' });
  });
});

describe('metadata', () => {
  const FORM = ['x-metadata-form', 'strings'] as const;

  it('is an object with numbers, booleans and a list, as the specification has it', async () => {
    const { metadata } = completionOf(await chat(gateway, hello({ model: 'large', user: 'm1' })));

    expect(metadata).toMatchObject({ discount: 0, cached: false, routing: [{ provider: 'acme', succeeded: true }] });
  });

  it('has a string for every value where the caller asks for it', async () => {
    const answer = await chat(gateway, hello({ model: 'large', user: 'm2' }), { headers: [FORM] });

    const { metadata } = Object(answer.json);
    expect(Object.values(metadata).map((value) => typeof value)).toEqual(Object.keys(metadata).map(() => 'string'));
    expect([metadata.discount, metadata.cached, JSON.parse(metadata.routing)]).toEqual([
      '0',
      'false',
      [expect.objectContaining({ provider: 'acme' })],
    ]);
  });

  it('has it in a stream too', async () => {
    upstream.begin(events(chunk({ content: 'Hi' }, 'stop'), USAGE_CHUNK));
    const answer = await chat(gateway, hello({ model: 'large', stream: true, user: 'm3' }), { headers: [FORM] });

    expect(answer.text).toContain('"cached":"false"');
  });

  it('has it for everyone with METADATA_FORM=strings, but for who asks for the object', async () => {
    const other = await startGateway({ METADATA_FORM: 'strings' });
    const strings = await chat(other, hello());
    const object = await chat(other, hello({ user: 'two' }), { headers: [['x-metadata-form', 'object']] });
    await other.close();

    expect([Object(strings.json).metadata.cached, completionOf(object).metadata.cached]).toEqual(['false', false]);
  });

  it('in a form that does not exist is 400', async () => {
    const answer = await chat(gateway, hello({ model: 'large' }), { headers: [['x-metadata-form', 'xml']] });

    expect([answer.status, errorOf(answer).message]).toEqual([
      400,
      'The header x-metadata-form must be object or strings.',
    ]);
  });
});
