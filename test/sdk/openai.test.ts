// The `openai` package as its users have it, with nothing changed but the address.
import OpenAI, {
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
} from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addRule, removeRule, startGateway, type TestGateway } from '../support/gateway.ts';
import { gathered, thrown } from '../support/promises.ts';
import { callRows, settled } from '../support/rows.ts';
import { chunk, startUpstream, type TestUpstream, upstreamEnv, writeEvents } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;
let client: OpenAI;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
  client = clientWith(gateway.firstRun.gatewayKey);
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const clientWith = (apiKey: string): OpenAI => new OpenAI({ apiKey, baseURL: `${gateway.origin}/v1` });

const hello = { model: 'sandbox-paid', messages: [{ role: 'user' as const, content: 'Hello' }] };

const failing = (fault: string) => ({
  model: 'sandbox-faulty',
  messages: [{ role: 'user' as const, content: `fail:${fault}` }],
});

describe('a completion', () => {
  it('is read whole, with its request id', async () => {
    const completion = await client.chat.completions.create(hello);

    expect(completion.choices[0]?.message.content).toBe('You said: Hello');
    expect(completion.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 4, total_tokens: 6, cost: 0 });
    expect(completion._request_id).toMatch(/^req_[0-9a-f]{32}$/);
    expect(callRows(gateway).at(-1)?.requestId).toBe(completion._request_id);
  });

  it('calls tools, and takes their results', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }];
    const asked = { role: 'user' as const, content: 'weather' };
    const first = await client.chat.completions.create({ ...hello, messages: [asked], tools });
    const message = first.choices[0]?.message;
    const call = message?.tool_calls?.[0];
    if (message === undefined || call?.type !== 'function') throw new Error('no tool was called');

    const second = await client.chat.completions.create({
      ...hello,
      messages: [asked, message, { role: 'tool', tool_call_id: call.id, content: 'sunny' }],
      tools,
    });

    expect([first.choices[0]?.finish_reason, call.function]).toEqual([
      'tool_calls',
      { name: 'weather', arguments: '{}' },
    ]);
    expect(second.choices[0]?.message.content).toBe('The tool said: sunny');
  });
});

describe('a stream', () => {
  it('is read chunk by chunk', async () => {
    const stream = await client.chat.completions.create({ ...hello, stream: true });

    let text = '';
    const ids = new Set<string>();
    for await (const part of stream) {
      ids.add(part.id);
      text += part.choices[0]?.delta.content ?? '';
    }
    expect([text, ids.size]).toEqual(['You said: Hello', 1]);
  });

  it('has its usage in the last chunk with include_usage', async () => {
    const stream = await client.chat.completions.create({
      ...hello,
      stream: true,
      stream_options: { include_usage: true },
    });

    const parts = await gathered(stream);

    expect([parts.at(-1)?.choices, parts.at(-1)?.usage?.total_tokens]).toEqual([[], 6]);
    expect(parts.slice(0, -1).every(({ usage }) => usage === null)).toBe(true);
  });

  it("is gathered by the package's own helper, tools included", async () => {
    const tools = [{ type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } }];
    const runner = client.chat.completions.stream({
      ...hello,
      messages: [{ role: 'user', content: 'weather' }],
      tools,
    });

    const completion = await runner.finalChatCompletion();

    expect(completion.choices[0]?.message.tool_calls).toMatchObject([
      { function: { name: 'weather', arguments: '{}' } },
    ]);
  });

  it('that the caller leaves is cancelled and billed', async () => {
    const { promise: left, resolve } = Promise.withResolvers<void>();
    upstream.begin((response) => {
      response.on('close', resolve);
      writeEvents(response, chunk({ content: 'Hi' }));
    });
    const { data: stream, request_id: id } = await client.chat.completions
      .create({ ...hello, model: 'large', stream: true })
      .withResponse();

    for await (const part of stream) {
      expect(part.choices[0]?.delta.content).toBe('Hi');
      break;
    }

    await left;
    expect(await settled(gateway, id ?? '')).toMatchObject({
      state: 'settled',
      statusCode: 499,
      completionTokens: 1,
    });
  });

  it('that breaks in the middle throws an APIError', async () => {
    const stream = await client.chat.completions.create({ ...failing('cut'), stream: true });

    const error = await thrown(gathered(stream));

    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({ code: 'upstream_error', type: 'api_error' });
  });
});

describe('an aborted call', () => {
  it('throws the abort, and is cancelled upstream', async () => {
    const arrived = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    upstream.begin((response) => {
      response.on('close', left.resolve);
      arrived.resolve();
    });
    const controller = new AbortController();
    const call = thrown(client.chat.completions.create({ ...hello, model: 'large' }, { signal: controller.signal }));
    await arrived.promise;

    controller.abort();

    expect(await call).toBeInstanceOf(APIUserAbortError);
    await left.promise;
  });
});

describe('the model list', () => {
  it('is iterated', async () => {
    const models = await gathered(client.models.list());

    expect(models.map(({ id, object, owned_by: owner }) => [id, object, owner])).toEqual([
      ['large', 'model', 'acme'],
      ['sandbox-faulty', 'model', 'sandbox'],
      ['sandbox-free', 'model', 'sandbox'],
      ['sandbox-image-max', 'model', 'sandbox'],
      ['sandbox-image-plus', 'model', 'sandbox'],
      ['sandbox-moderation', 'model', 'sandbox'],
      ['sandbox-paid', 'model', 'sandbox'],
      ['sandbox-slow', 'model', 'sandbox'],
    ]);
  });
});

describe('an error', () => {
  it('400 is a BadRequestError with the place of the fault', async () => {
    const error = await thrown(client.chat.completions.create({ ...hello, temperature: 3 }));

    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ code: 'invalid_request', param: '/temperature', type: 'invalid_request_error' });
  });

  it('401 is an AuthenticationError', async () => {
    const error = await thrown(clientWith('nonsense').chat.completions.create(hello));

    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ code: 'invalid_api_key', requestID: expect.stringMatching(/^req_/) });
  });

  it('403 is a PermissionDeniedError with the rule', async () => {
    const { id } = addRule(gateway, 'key', { ruleType: 'deny_models', ruleValue: { models: ['sandbox-paid'] } });
    const error = await thrown(client.chat.completions.create(hello));
    removeRule(gateway, 'key', id);

    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error).toMatchObject({ code: 'permission_denied', message: expect.stringContaining(id) });
    expect((await client.chat.completions.create(hello)).object).toBe('chat.completion');
  });

  it('404 is a NotFoundError', async () => {
    const error = await thrown(client.chat.completions.create({ ...hello, model: 'no-such-model' }));

    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ code: 'model_not_found' });
  });

  it('502 is an InternalServerError, which the package does not retry', async () => {
    const before = callRows(gateway).length;

    const error = await thrown(client.chat.completions.create(failing('500')));

    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 502, code: 'upstream_error' });
    expect(callRows(gateway)).toHaveLength(before + 1);
  });
});
