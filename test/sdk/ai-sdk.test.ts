// The Vercel AI SDK as its users have it: `ai` with `@ai-sdk/openai-compatible`, with nothing changed but the address.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { gathered } from '../support/promises.ts';
import { callRows, settled } from '../support/rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  upstreamEnv,
  writeEvents,
} from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let portcullis: ReturnType<typeof provider>;

const provider = (apiKey: string) =>
  createOpenAICompatible({
    name: 'portcullis',
    apiKey,
    baseURL: `${gateway.origin}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
  portcullis = provider(gateway.firstRun.gatewayKey);
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const sandbox = () => portcullis('sandbox-paid');
const large = () => portcullis('large');

describe('text', () => {
  it('is generated, with its usage', async () => {
    const { text, finishReason, usage, response } = await generateText({ model: sandbox(), prompt: 'Hello' });

    expect([text, finishReason, usage]).toMatchObject([
      'You said: Hello',
      'stop',
      { inputTokens: 2, outputTokens: 4, totalTokens: 6 },
    ]);
    expect(response.headers?.['x-request-id']).toBe(callRows(gateway).at(-1)?.requestId);
  });

  it('is streamed, with its usage', async () => {
    const result = streamText({ model: sandbox(), prompt: 'Hello, stream' });

    const parts = await gathered(result.textStream);

    expect(parts.length).toBeGreaterThan(1);
    expect([parts.join(''), await result.finishReason, await result.usage]).toMatchObject([
      'You said: Hello, stream',
      'stop',
      { inputTokens: 4, outputTokens: 6, totalTokens: 10 },
    ]);
  });

  it('that the caller aborts is cancelled upstream and billed', async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    upstream.begin((response) => {
      response.on('close', resolve);
      writeEvents(response, chunk({ content: 'Hi' }));
    });
    const controller = new AbortController();
    const result = streamText({ model: large(), prompt: 'Hello', abortSignal: controller.signal });

    for await (const part of result.textStream) {
      expect(part).toBe('Hi');
      controller.abort();
    }

    await left;
    const id = callRows(gateway).at(-1)?.requestId ?? '';
    expect(await settled(gateway, id)).toMatchObject({ statusCode: 499, completionTokens: 1 });
  });
});

describe('thoughts', () => {
  const message = (name: string) => ({ role: 'assistant', content: 'Hi', [name]: 'Hm.' });

  it.each(['reasoning', 'reasoning_content'])('of an upstream that calls them %s are seen', async (name) => {
    upstream.begin(json({ ...completion(''), choices: [{ index: 0, message: message(name), finish_reason: 'stop' }] }));
    const whole = await generateText({ model: large(), prompt: `whole ${name}` });

    upstream.begin(events(chunk({ [name]: 'Hm.' }), chunk({ content: 'Hi' }), chunk({}, 'stop')));
    const streamed = streamText({ model: large(), prompt: `streamed ${name}` });

    expect([whole.reasoningText, whole.text]).toEqual(['Hm.', 'Hi']);
    expect([await streamed.reasoningText, await streamed.text]).toEqual(['Hm.', 'Hi']);
  });
});

describe('tools', () => {
  const weather = tool({
    description: 'The weather of a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `sunny in ${city}`,
  });
  const request = { prompt: 'weather', tools: { weather }, stopWhen: isStepCount(3) };

  it('are called, and lead to an answer in a further step', async () => {
    const { text, steps, totalUsage } = await generateText({ model: sandbox(), ...request });

    expect(text).toBe('The tool said: sunny in sandbox');
    expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
    expect(steps[0]?.toolResults).toMatchObject([{ input: { city: 'sandbox' }, output: 'sunny in sandbox' }]);
    expect(totalUsage.totalTokens).toBeGreaterThan(0);
  });

  it('are called from streams', async () => {
    const result = streamText({ model: sandbox(), ...request });

    expect(await result.text).toBe('The tool said: sunny in sandbox');
    expect((await result.steps).map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop']);
  });

  it('that are called in parallel come with all their results', async () => {
    const call = (index: number, city: string) => ({
      index,
      id: `call_${city}`,
      type: 'function',
      function: { name: 'weather', arguments: JSON.stringify({ city }) },
    });
    upstream.begin((response, received) => {
      const isSecond = received.text.includes('"tool_call_id"');
      const calls = chunk({ tool_calls: [call(0, 'Rome'), call(1, 'Oslo')] });
      const list = isSecond ? [chunk({ content: 'Both.' }), chunk({}, 'stop')] : [calls, chunk({}, 'tool_calls')];
      return events(...list)(response, received);
    });

    const result = streamText({ model: large(), ...request });

    expect(await result.text).toBe('Both.');
    const [first] = await result.steps;
    expect(first?.toolResults.map(({ output }) => output)).toEqual(['sunny in Rome', 'sunny in Oslo']);
  });
});
