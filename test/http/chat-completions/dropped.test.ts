// POST /v1/chat/completions: a field that the provider cannot honour is said, never lost in silence.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chat, errorOf, hello } from '../../support/chat.ts';
import { startGateway, type TestGateway } from '../../support/gateway.ts';
import {
  chunk,
  completion,
  events,
  json,
  startUpstream,
  type TestUpstream,
  USAGE_CHUNK,
} from '../../support/upstream.ts';

const CLAUDE = 'anthropic/claude-sonnet-4-6';
const GEMINI = 'google/gemini-2.5-flash';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  const { origin } = upstream;
  gateway = await startGateway(
    {
      CEREBRAS_API_KEY: 'a',
      CEREBRAS_BASE_URL: `${origin}/v1`,
      MISTRAL_API_KEY: 'b',
      MISTRAL_BASE_URL: `${origin}/v1`,
      MOONSHOTAI_API_KEY: 'c',
      MOONSHOTAI_BASE_URL: `${origin}/v1`,
      XAI_API_KEY: 'd',
      XAI_BASE_URL: `${origin}/v1`,
      GROQ_API_KEY: 'e',
      GROQ_BASE_URL: `${origin}/v1`,
      OPENROUTER_API_KEY: 'f',
      OPENROUTER_BASE_URL: `${origin}/v1`,
      ANTHROPIC_API_KEY: 'g',
      ANTHROPIC_BASE_URL: origin,
      GOOGLE_API_KEY: 'h',
      GOOGLE_BASE_URL: origin,
    },
    { caching: true },
  );
});

beforeEach(() => upstream.begin(json(completion('Hi'))));

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

const modelAt = async (provider: string): Promise<string> => {
  const { data } = Object(await (await fetch(`${gateway.origin}/v1/models?mapped=true`)).json());
  const entry = data.find(
    ({ id, output }: { id: string; output?: string }) => id.startsWith(`${provider}/`) && output === undefined,
  );
  return entry.id;
};

describe('a field that only tunes or labels', () => {
  it.each([
    ['cerebras', { presence_penalty: 0.5, logit_bias: { '1': 2 } }, 'presence_penalty, logit_bias'],
    ['mistral', { user: 'u', store: true, verbosity: 'low' }, 'store, user, verbosity'],
    ['moonshotai', { temperature: 0.2, top_p: 0.5 }, 'temperature, top_p'],
    ['xai', { frequency_penalty: 1 }, 'frequency_penalty'],
  ])('that %s does not take is left out, and named in a header: %j', async (provider, fields, named) => {
    const answer = await chat(gateway, hello({ model: await modelAt(provider), ...fields }));

    expect([answer.status, answer.headers['x-dropped-parameters']]).toEqual([200, named]);
    expect(Object.keys(Object(upstream.received[0]?.json))).not.toEqual(expect.arrayContaining(Object.keys(fields)));
  });

  it('is named before the first piece of a stream too, and when the answer comes from the cache', async () => {
    const body = hello({ model: await modelAt('xai'), stream: true, presence_penalty: 1 });
    upstream.begin(events(chunk({ content: 'Hi' }, 'stop'), USAGE_CHUNK));

    const [first, cached] = [await chat(gateway, body), await chat(gateway, body)];

    expect([first, cached].map(({ headers }) => headers['x-dropped-parameters'])).toEqual([
      'presence_penalty',
      'presence_penalty',
    ]);
    expect([cached.headers['x-cache'], upstream.received.length]).toEqual(['HIT', 1]);
  });

  it('is not named where it asks for what happens anyway, or where the provider takes it', async () => {
    const resting = await chat(gateway, hello({ model: await modelAt('xai'), presence_penalty: 0, user: 'x' }));

    expect('x-dropped-parameters' in resting.headers).toBe(false);
  });

  it.each([
    ['a stop text of blanks', { stop: ['\n\n', 'END'] }, { stop_sequences: ['END'] }, 'stop'],
    ['a temperature above 1', { temperature: 1.5 }, { temperature: 1 }, 'temperature'],
  ])('that Claude takes in part is named: %s', async (_, fields, sent, named) => {
    upstream.begin(
      json({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-6',
        content: [{ type: 'text', text: 'Hi' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      }),
    );

    const answer = await chat(gateway, hello({ model: CLAUDE, ...fields }));

    expect([answer.status, answer.headers['x-dropped-parameters']]).toEqual([200, named]);
    expect(upstream.received[0]?.json).toMatchObject(sent);
  });

  it('goes to a provider that honours it, though another one is cheaper', async () => {
    const model = 'gemma-4-31b-it';
    upstream.begin(json({ candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] }));
    await chat(gateway, hello({ model }));
    const cheapest = upstream.received.map(({ headers }) => headers['x-goog-api-key']);
    upstream.begin(json(completion('Hi')));

    const answer = await chat(gateway, hello({ model, logit_bias: { '1': 2 } }));

    expect([cheapest, upstream.received.map(({ headers }) => headers.authorization)]).toEqual([['h'], ['Bearer f']]);
    expect([answer.status, answer.headers['x-dropped-parameters']]).toEqual([200, undefined]);
  });
});

const FUNCTION = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
const SCHEMA = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } };

describe('a field that changes what comes back', () => {
  it.each([
    [CLAUDE, { logprobs: true }, '/logprobs', 'The provider does not take `logprobs`.'],
    [CLAUDE, { n: 2 }, '/n', 'The provider does not take `n`.'],
    [
      CLAUDE,
      { tools: [{ type: 'custom', custom: { name: 'c' } }] },
      '/tools/0/type',
      'The provider takes no tools of type `custom`.',
    ],
    [
      'anthropic/claude-opus-5-5',
      { tools: [FUNCTION], tool_choice: 'required' },
      '/tool_choice',
      'The model cannot be made to call a tool: use `auto`.',
    ],
    [
      GEMINI,
      { tools: [FUNCTION], response_format: SCHEMA },
      '/response_format',
      'The model does not take tools and a schema for its answer at once.',
    ],
    [GEMINI, { modalities: ['text', 'audio'] }, '/modalities', 'The provider answers with text and images only.'],
    [GEMINI, { stop: ['1', '2', '3', '4', '5', '6'] }, '/stop', 'The provider takes at most 5 stop texts.'],
  ])('is 400 where no provider of the model can honour it: %s, %j', async (model, fields, param, message) => {
    const answer = await chat(gateway, hello({ model, ...fields }));

    expect([answer.status, errorOf(answer)]).toEqual([
      400,
      { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' },
    ]);
    expect(upstream.received).toEqual([]);
  });

  it('is served by the provider that can', async () => {
    const tools = [{ type: 'custom', custom: { name: 'c' } }];

    const answer = await chat(gateway, hello({ model: 'gemma-4-31b-it', tools }));

    expect([answer.status, upstream.received.map(({ headers }) => headers.authorization)]).toEqual([200, ['Bearer f']]);
  });
});
