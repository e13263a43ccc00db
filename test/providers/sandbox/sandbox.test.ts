import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { jsonSample } from '../../../src/providers/sandbox/chat.ts';
import { type Sandbox, startSandbox } from '../../../src/providers/sandbox/sandbox.ts';
import { openRaw } from '../../support/raw.ts';
import { type Answer, send } from '../../support/request.ts';

let sandbox: Sandbox;
let client: OpenAI;

beforeAll(async () => {
  sandbox = await startSandbox({ firstByteMs: 20, chunkMs: 1 });
  client = new OpenAI({ apiKey: sandbox.key, baseURL: `${sandbox.origin}/v1`, maxRetries: 0 });
});

afterAll(() => sandbox.close());

type Parameters = Omit<OpenAI.ChatCompletionCreateParamsNonStreaming, 'messages' | 'model'>;

const say = (content: string, more: Parameters = {}, model = 'sandbox-paid') =>
  client.chat.completions.create({ model, messages: [{ role: 'user', content }], ...more });

const WEATHER: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: {
    name: 'get_weather',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' }, unit: { enum: ['C', 'F'] }, days: { type: 'integer' } },
      required: ['city', 'unit'],
    },
  },
};

async function readChunks(parameters: Omit<OpenAI.ChatCompletionCreateParamsStreaming, 'stream' | 'model'>) {
  const stream = await client.chat.completions.create({ model: 'sandbox-slow', stream: true, ...parameters });
  const chunks: OpenAI.ChatCompletionChunk[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

describe('the sandbox', () => {
  it.each(['sandbox-free', 'sandbox-paid', 'sandbox-slow'])('echoes the last message as %s', async (model) => {
    expect(await say('Hello, gate!', {}, model)).toEqual({
      id: expect.stringMatching(/^chatcmpl-[0-9a-f]{24}$/),
      object: 'chat.completion',
      created: expect.any(Number),
      model,
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'You said: Hello, gate!' },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: { prompt_tokens: 3, completion_tokens: 6, total_tokens: 9 },
    });
  });

  it('answers the same to the same', async () => {
    expect(await say('again')).toEqual(await say('again'));
  });

  it('cuts at max_tokens, in tokens of four characters', async () => {
    const { choices, usage } = await say('Hello', { max_tokens: 3 });
    expect(choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'You said: He' } });
    expect(usage).toEqual({ prompt_tokens: 2, completion_tokens: 3, total_tokens: 5 });
  });

  it('cuts before a stop sequence', async () => {
    const { choices } = await say('one two three', { stop: ['three', ' two'] });
    expect(choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'You said: one' } });
  });

  it('gives n choices', async () => {
    const { choices, usage } = await say('Hi', { n: 2 });
    expect(choices.map(({ message }) => message.content)).toEqual(['You said: Hi', 'You said (2): Hi']);
    expect(usage?.completion_tokens).toBe(7);
  });

  it('calls a tool whose name stands in the message, with arguments its schema takes', async () => {
    const { choices } = await say('please get_weather now', { tools: [WEATHER] });
    expect(choices).toEqual([
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: [
            {
              id: 'call_1_0',
              type: 'function',
              function: { name: 'get_weather', arguments: '{"city":"sandbox","unit":"C"}' },
            },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ]);
  });

  it.each([
    ['no tool is named', 'hello', undefined, 'stop'],
    ['a tool is forced', 'hello', { type: 'function', function: { name: 'get_weather' } }, 'tool_calls'],
    ['any tool is required', 'hello', 'required', 'tool_calls'],
    ['tools are forbidden', 'get_weather', 'none', 'stop'],
  ] as const)('obeys tool_choice when %s', async (_name, content, choice, reason) => {
    const more = choice === undefined ? {} : { tool_choice: choice };
    const { choices } = await say(content, { tools: [WEATHER], ...more });
    expect(choices[0]?.finish_reason).toBe(reason);
  });

  it('reports what a tool said', async () => {
    const { choices } = await client.chat.completions.create({
      model: 'sandbox-free',
      tools: [WEATHER],
      messages: [
        { role: 'user', content: 'get_weather' },
        {
          role: 'assistant',
          tool_calls: [{ id: 'a', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'a', content: '12 C' },
      ],
    });
    expect(choices[0]?.message.content).toBe('The tool said: 12 C');
  });

  it('answers in JSON where it is asked to', async () => {
    const object = await say('Hi', { response_format: { type: 'json_object' } });
    expect(object.choices[0]?.message.content).toBe('{"reply":"You said: Hi"}');
    const schema = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] };
    const shaped = await say('Hi', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } });
    expect(shaped.choices[0]?.message.content).toBe('{"ok":true}');
  });

  it('reads the text parts of a message and counts an image as 85 tokens', async () => {
    const { choices, usage } = await client.chat.completions.create({
      model: 'sandbox-free',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'see' },
            { type: 'image_url', image_url: { url: 'data:,' } },
          ],
        },
      ],
    });
    expect(choices[0]?.message.content).toBe('You said: see');
    expect(usage?.prompt_tokens).toBe(86);
  });

  it('lists its models', async () => {
    const { data } = await client.models.list();
    expect(data.map(({ id }) => id)).toEqual([
      'sandbox-free',
      'sandbox-paid',
      'sandbox-slow',
      'sandbox-faulty',
      'sandbox-image-plus',
      'sandbox-image-max',
      'sandbox-moderation',
    ]);
  });

  it.each([
    ['an unknown model', 404, '{"model":"gpt-x","messages":[{"role":"user","content":"x"}]}', '/v1/chat/completions'],
    ['no JSON', 400, '{', '/v1/chat/completions'],
    ['no messages', 400, '{"model":"sandbox-free"}', '/v1/chat/completions'],
    ['an unknown path', 404, '{}', '/v1/embeddings'],
  ])('refuses %s', async (_name, status, body, path) => {
    const response = await fetch(sandbox.origin + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.key}` },
      body,
    });
    expect(response.status).toBe(status);
    expect(await response.json()).toHaveProperty('error.message');
  });
});

describe('the listener of the sandbox', () => {
  const ask = (host: string | undefined, authorization: string | undefined, path = '/v1/models') =>
    send(sandbox.origin, {
      path,
      headers: [
        ['host', host ?? new URL(sandbox.origin).host],
        ...(authorization === undefined ? [] : [['authorization', authorization] as const]),
      ],
    });
  const outcome = ({ status, json }: Answer) => [status, Object(Object(json).error).code];

  it.each([undefined, '', 'Bearer', 'Bearer none', 'Basic bm9uZQ=='])(
    'turns another process away that sends the credential %j',
    async (authorization) => {
      expect(outcome(await ask(undefined, authorization))).toEqual([401, 'invalid_api_key']);
      expect(outcome(await ask(undefined, authorization, '/unknown'))).toEqual([401, 'invalid_api_key']);
    },
  );

  it('has another key at each start', async () => {
    const other = await startSandbox();
    const [mine, theirs] = [`Bearer ${sandbox.key}`, `Bearer ${other.key}`];
    expect([(await ask(undefined, mine)).status, (await ask(undefined, theirs)).status]).toEqual([200, 401]);
    await other.close();
  });

  it.each(['rebound.example', 'localhost', '127.0.0.1', '127.0.0.1:1', '[::1]:80', ''])(
    'turns a web page away that calls it %j, whatever it sends',
    async (host) => {
      for (const authorization of [undefined, `Bearer ${sandbox.key}`]) {
        expect(outcome(await ask(host, authorization))).toEqual([421, 'misdirected_request']);
      }
    },
  );

  it('reads no body of theirs', async () => {
    const { ended } = await openRaw(
      sandbox.origin,
      `POST /v1/chat/completions HTTP/1.1\r\nHost: ${new URL(sandbox.origin).host}\r\nContent-Length: 60000000\r\n\r\n{`,
    );
    expect(await ended).toMatch(/^HTTP\/1\.1 401 .*connection: close/is);
  });
});

describe('the stream of the sandbox', () => {
  it('comes token by token, with the role first, the end last and no usage unless asked for', async () => {
    const chunks = await readChunks({ messages: [{ role: 'user', content: 'Hi' }] });
    expect(chunks.map(({ choices }) => choices)).toEqual([
      [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'You ' }, finish_reason: null }],
      [{ index: 0, delta: { content: 'said' }, finish_reason: null }],
      [{ index: 0, delta: { content: ': Hi' }, finish_reason: null }],
      [{ index: 0, delta: {}, finish_reason: 'stop' }],
    ]);
    expect(new Set(chunks.map(({ id, created, usage }) => JSON.stringify([id, created, usage]))).size).toBe(1);
  });

  it('tells usage in a chunk of its own', async () => {
    const messages = [{ role: 'user', content: 'Hi' } as const];
    const chunks = await readChunks({ messages, stream_options: { include_usage: true } });
    expect(chunks.map(({ usage }) => usage)).toEqual([
      ...new Array(5).fill(null),
      { prompt_tokens: 1, completion_tokens: 3, total_tokens: 4 },
    ]);
    expect(chunks.at(-1)?.choices).toEqual([]);
  });

  it('says what the whole answer says, choices in turns and tool calls in pieces', async () => {
    const messages = [{ role: 'user', content: 'get_weather' } as const];
    const chunks = await readChunks({ messages, tools: [WEATHER], n: 2 });
    const whole = await client.chat.completions.create({ model: 'sandbox-slow', messages, tools: [WEATHER], n: 2 });
    const calls = [0, 1].map((index) => {
      const deltas = chunks.flatMap(({ choices }) => choices).filter((choice) => choice.index === index);
      const pieces = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
      const text = pieces.map((piece) => piece.function?.arguments ?? '').join('');
      return { id: pieces[0]?.id, type: 'function', function: { name: pieces[0]?.function?.name, arguments: text } };
    });
    expect(calls).toEqual(whole.choices.map(({ message }) => message.tool_calls?.[0]));
  });

  it('stops when its reader leaves', async () => {
    const stream = await client.chat.completions.create({
      model: 'sandbox-slow',
      stream: true,
      messages: [{ role: 'user', content: 'x'.repeat(2000) }],
    });
    for await (const _ of stream) break;
    expect((await say('still here')).choices).toHaveLength(1);
  });
});

describe('the model of the sandbox that fails on request', () => {
  const fail = (content: string, stream = false) =>
    fetch(`${sandbox.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.key}` },
      body: JSON.stringify({ model: 'sandbox-faulty', messages: [{ role: 'user', content }], stream }),
    });

  it.each([
    ['anything', 500],
    ['fail:429', 429],
    ['please fail:503 now', 503],
    ['fail:999', 500],
    ['fail:nonsense', 500],
  ])('answers %j with status %i', async (content, status) => {
    const response = await fail(content);
    expect(response.status).toBe(status);
    expect(await response.json()).toEqual({
      error: {
        message: `The sandbox fails with status ${status}, as asked.`,
        type: status >= 500 ? 'server_error' : 'invalid_request_error',
        param: null,
        code: 'sandbox_fault',
      },
    });
  });

  it('fails in the ways of a success gone wrong', async () => {
    await expect((await fail('fail:cut')).text()).rejects.toThrow();
    await expect((await fail('fail:cut', true)).text()).rejects.toThrow();
    await expect((await fail('fail:malformed')).json()).rejects.toThrow();
    expect(await (await fail('fail:empty')).json()).toMatchObject({ choices: [] });
    expect(await (await fail('fail:error')).json()).toHaveProperty('error');
    expect(await (await fail('fail:empty', true)).text()).toBe('data: [DONE]\n\n');
    expect(await (await fail('fail:malformed', true)).text()).not.toContain('[DONE]');
    expect(await (await fail('fail:error', true)).text()).toContain('data: {"error":');
  });

  it.each(['fail:hang', 'fail:stall'])('never ends after %s, until the caller leaves', async (content) => {
    const caller = new AbortController();
    const answer = fetch(`${sandbox.origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.key}` },
      body: JSON.stringify({ model: 'sandbox-faulty', messages: [{ role: 'user', content }] }),
      signal: caller.signal,
    }).then((response) => response.text());
    setTimeout(() => caller.abort(), 50);
    await expect(answer).rejects.toThrow('aborted');
  });
});

describe('jsonSample', () => {
  it('fills what is required, by type, to a bounded depth and width', () => {
    const schema = {
      type: 'object',
      required: ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
      properties: {
        a: { type: 'string' },
        b: { type: 'number', minimum: 5 },
        c: { type: 'array' },
        d: { const: null },
        e: { type: 'object', required: ['x'], properties: { x: { type: 'null' } } },
        f: { type: 'boolean' },
      },
    };
    expect(jsonSample(schema)).toEqual({ a: 'sandbox', b: 5, c: [], d: null, e: { x: null }, f: true, g: 'sandbox' });
    const many = { required: Array.from({ length: 1000 }, (_, index) => `p${index}`) };
    expect(Object.keys(Object(jsonSample(many)))).toHaveLength(16);
    const deep: Record<string, unknown> = { type: 'object', required: ['self'] };
    deep.properties = { self: deep };
    expect(JSON.stringify(jsonSample(deep))).toBe('{"self":{"self":{"self":{"self":{}}}}}');
  });
});
