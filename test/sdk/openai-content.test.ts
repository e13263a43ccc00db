// The `openai` package as its users have it, for structured output, images in messages, thoughts, and errors of the gateway's own.
import OpenAI, { APIConnectionError, InternalServerError, RateLimitError } from 'openai';
import { LengthFinishReasonError } from 'openai/error';
import { zodResponseFormat } from 'openai/helpers/zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startGateway, type TestGateway } from '../support/gateway.ts';
import { thrown } from '../support/promises.ts';
import { callRows } from '../support/rows.ts';
import { chunk, completion, events, json, startUpstream, type TestUpstream, upstreamEnv } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), MAX_IN_FLIGHT: '2' });
  client = new OpenAI({ apiKey: gateway.firstRun.gatewayKey, baseURL: `${gateway.origin}/v1` });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const asked = [{ role: 'user' as const, content: 'Who?' }];

describe('structured output', () => {
  const Person = z.object({ name: z.string(), age: z.int(), tags: z.array(z.string()), kind: z.enum(['cat', 'dog']) });
  const format = zodResponseFormat(Person, 'person');
  const SAMPLE = { name: 'sandbox', age: expect.any(Number), tags: [], kind: 'cat' };

  it('is parsed by its schema', async () => {
    const { choices } = await client.chat.completions.parse({
      model: 'sandbox-paid',
      messages: asked,
      response_format: format,
    });

    expect(choices[0]?.message.parsed).toEqual(SAMPLE);
  });

  it('is parsed at the end of a stream', async () => {
    const runner = client.chat.completions.stream({ model: 'sandbox-paid', messages: asked, response_format: format });

    const { choices } = await runner.finalChatCompletion();

    expect(choices[0]?.message.parsed).toEqual(SAMPLE);
  });

  it('reaches the upstream with its schema untouched', async () => {
    upstream.begin(json(completion('{"name":"x","age":1,"tags":[],"kind":"dog"}')));

    await client.chat.completions.parse({ model: 'large', messages: asked, response_format: format });

    expect(upstream.received[0]?.json).toMatchObject({ response_format: JSON.parse(JSON.stringify(format)) });
  });

  it('that was cut for its length has that finish reason', async () => {
    const cut = client.chat.completions.parse({
      model: 'sandbox-paid',
      messages: asked,
      response_format: format,
      max_tokens: 1,
    });

    expect(await thrown(cut)).toBeInstanceOf(LengthFinishReasonError);
  });
});

describe('images in messages', () => {
  const PIXEL = 'data:image/png;base64,iVBORw0KGgo=';
  const messages = [
    {
      role: 'user' as const,
      content: [
        { type: 'text' as const, text: 'What is this?' },
        { type: 'image_url' as const, image_url: { url: PIXEL, detail: 'low' as const } },
      ],
    },
  ];

  it('reach the upstream untouched', async () => {
    upstream.begin(json(completion('A pixel.')));

    const { choices } = await client.chat.completions.create({ model: 'large', messages });

    expect(choices[0]?.message.content).toBe('A pixel.');
    expect(upstream.received[0]?.json).toMatchObject({ messages });
  });

  it('are counted by the sandbox', async () => {
    const { usage } = await client.chat.completions.create({ model: 'sandbox-paid', messages });

    expect(usage?.prompt_tokens).toBe(4 + 85);
  });
});

describe('thoughts', () => {
  it('are in the fields that users of the package read, whatever the upstream calls them', async () => {
    upstream.begin(
      json({
        ...completion(''),
        choices: [
          { index: 0, message: { role: 'assistant', content: 'Hi', reasoning_content: 'Hm.' }, finish_reason: 'stop' },
        ],
      }),
    );
    const { choices } = await client.chat.completions.create({ model: 'large', messages: asked });
    expect(choices[0]?.message).toMatchObject({ content: 'Hi', reasoning: 'Hm.' });

    upstream.begin(events(chunk({ reasoning: 'Hm.' }), chunk({ content: 'Hi' }), chunk({}, 'stop')));
    const stream = await client.chat.completions.create({ model: 'large', messages: asked, stream: true });
    const deltas = [];
    for await (const part of stream) deltas.push(part.choices[0]?.delta);
    expect(deltas).toMatchObject([{ reasoning: 'Hm.' }, { content: 'Hi' }, {}]);
  });
});

describe('what the package tries again', () => {
  const hello = { model: 'large', messages: asked };

  it('is an overloaded gateway, which then works again', async () => {
    const { promise: go, resolve } = Promise.withResolvers<void>();
    upstream.begin(async (response, received) => {
      await go;
      await json(completion('Hello'))(response, received);
    });
    const held = [client.chat.completions.create(hello), client.chat.completions.create(hello)];
    await expect.poll(() => upstream.received.length).toBe(2);

    const refused = await thrown(client.chat.completions.create(hello, { maxRetries: 0 }));
    const later = client.chat.completions.create(hello);
    resolve();

    expect(refused).toBeInstanceOf(InternalServerError);
    expect(refused).toMatchObject({ status: 503, code: 'overloaded', headers: expect.any(Headers) });
    for (const each of [...held, later]) expect((await each).choices[0]?.message.content).toBe('Hello');
  });

  it.each([
    ['429', RateLimitError],
    ['503', InternalServerError],
  ])('is what every upstream refuses for now with status %s', async (status, type) => {
    const before = callRows(gateway).length;
    const messages = [{ role: 'user' as const, content: `fail:${status}` }];

    const error = await thrown(
      client.chat.completions.create({ model: 'sandbox-faulty', messages }, { maxRetries: 1 }),
    );

    expect(error).toBeInstanceOf(type);
    expect(callRows(gateway)).toHaveLength(before + 2);
  });

  it.each(['500', '408'])('is not what an upstream says with status %s, which was tried already', async (status) => {
    const before = callRows(gateway).length;
    const messages = [{ role: 'user' as const, content: `fail:${status}` }];

    const error = await thrown(client.chat.completions.create({ model: 'sandbox-faulty', messages }));

    expect(error).toBeInstanceOf(InternalServerError);
    expect(callRows(gateway)).toHaveLength(before + 1);
  });

  it('is a connection that cannot be made', async () => {
    const nobody = new OpenAI({ apiKey: 'x', baseURL: 'http://127.0.0.1:1/v1', maxRetries: 0 });

    expect(await thrown(nobody.chat.completions.create(hello))).toBeInstanceOf(APIConnectionError);
  });
});
