// The `openai` package as its users have it, for tools.
import OpenAI from 'openai';
import { zodFunction } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
  upstreamEnv,
} from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
  client = new OpenAI({ apiKey: gateway.firstRun.gatewayKey, baseURL: `${gateway.origin}/v1` });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const tools = [
  { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } },
  { type: 'function' as const, function: { name: 'time', parameters: { type: 'object' } } },
];
const asked = { role: 'user' as const, content: 'How is it in Rome and Oslo?' };

const call = (id: string, name: string, args: string) => ({
  id,
  type: 'function',
  function: { name, arguments: args },
});
const ROME = '{"city":"Rome"}';
const OSLO = '{"city":"Oslo"}';

/** One fragment of a streamed call. */
const fragment = (index: number, more: object, args: string): object =>
  chunk({
    tool_calls: [{ index, ...more, function: { ...('id' in more ? { name: 'weather' } : {}), arguments: args } }],
  });

describe('parallel calls', () => {
  it('are all in a whole answer, and their results go back to the upstream as they are', async () => {
    const calls = [call('call_a', 'weather', ROME), call('call_b', 'weather', OSLO)];
    const message = { role: 'assistant', content: null, tool_calls: calls };
    upstream.begin(json({ ...completion(''), choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }));
    const first = await client.chat.completions.create({ model: 'large', messages: [asked], tools });
    const answered = first.choices[0]?.message;
    if (answered?.tool_calls === undefined) throw new Error('no tool was called');
    expect(answered.tool_calls).toEqual(calls);

    upstream.begin(json(completion('Warm and cold.')));
    const results = answered.tool_calls.map(({ id }) => ({
      role: 'tool' as const,
      tool_call_id: id,
      content: `of ${id}`,
    }));
    const second = await client.chat.completions.create({
      model: 'large',
      messages: [asked, answered, ...results],
      tools,
    });

    expect(second.choices[0]?.message.content).toBe('Warm and cold.');
    expect(upstream.received[0]?.json).toMatchObject({
      messages: [
        asked,
        { role: 'assistant', tool_calls: calls },
        { role: 'tool', tool_call_id: 'call_a', content: 'of call_a' },
        { role: 'tool', tool_call_id: 'call_b', content: 'of call_b' },
      ],
    });
  });

  it('are put together from the fragments of a stream', async () => {
    upstream.begin(
      events(
        fragment(0, { id: 'call_a', type: 'function' }, ''),
        fragment(0, {}, '{"city":'),
        fragment(1, { id: 'call_b', type: 'function' }, OSLO.slice(0, 5)),
        fragment(0, {}, '"Rome"}'),
        fragment(1, {}, OSLO.slice(5)),
        chunk({}, 'tool_calls'),
        USAGE_CHUNK,
      ),
    );

    const runner = client.chat.completions.stream({ model: 'large', messages: [asked], tools });
    const { choices } = await runner.finalChatCompletion();

    expect([choices[0]?.finish_reason, choices[0]?.message.tool_calls]).toMatchObject([
      'tool_calls',
      [call('call_a', 'weather', ROME), call('call_b', 'weather', OSLO)],
    ]);
  });
});

describe('the loop of the package', () => {
  const weather = zodFunction({
    name: 'weather',
    parameters: z.object({ city: z.string() }),
    function: ({ city }) => `sunny in ${city}`,
  });
  const request = {
    model: 'sandbox-paid',
    messages: [{ role: 'user' as const, content: 'weather' }],
    tools: [weather],
  };

  it('calls the tool and comes to an answer', async () => {
    const runner = client.chat.completions.runTools(request);

    expect(await runner.finalContent()).toBe('The tool said: sunny in sandbox');
    expect(runner.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(await runner.totalUsage()).toMatchObject({ total_tokens: expect.any(Number) });
  });

  it('does so with streams', async () => {
    const runner = client.chat.completions.runTools({ ...request, stream: true });

    let text = '';
    for await (const part of runner) text += part.choices[0]?.delta.content ?? '';

    expect(text).toBe('The tool said: sunny in sandbox');
    expect(await runner.finalFunctionToolCall()).toMatchObject({ name: 'weather', arguments: '{"city":"sandbox"}' });
  });
});
