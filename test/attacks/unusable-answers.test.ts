// Threat: a caller provokes answers that a provider charges for and the gateway cannot use, and pays nothing for them.
// Defence: what the provider reported is booked for every attempt, also for one that failed. A further attempt follows only where
// the limits have room for it besides what was spent, and only while the key may still be used.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { chat, completionOf, errorOf, hello } from '../support/chat.ts';
import { addKey, disable, startGateway, type TestGateway } from '../support/gateway.ts';
import { draw, fox } from '../support/images.ts';
import type { Answer } from '../support/request.ts';
import { callRow, keySums } from '../support/rows.ts';
import {
  chunk,
  completion,
  events,
  json,
  type Reply,
  startUpstream,
  type TestUpstream,
  USAGE,
  upstreamEnv,
} from '../support/upstream.ts';

let first: TestUpstream;
let second: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  [first, second] = [await startUpstream(), await startUpstream()];
});

afterEach(() => gateway.close());

afterAll(() => Promise.all([first.close(), second.close()]));

/** USD per million tokens of the prompt and of the answer: `acme` is asked first, `beta` after it. */
const start = async (env: Readonly<Record<string, string>> = {}): Promise<void> => {
  gateway = await startGateway({
    ...upstreamEnv('acme', first.origin, 'large', 'large=1/2'),
    ...upstreamEnv('beta', second.origin, 'large', 'large=2/4'),
    ANTHROPIC_API_KEY: 'a',
    ANTHROPIC_BASE_URL: first.origin,
    GOOGLE_API_KEY: 'g',
    GOOGLE_BASE_URL: first.origin,
    OPENAI_API_KEY: 'o',
    OPENAI_BASE_URL: `${first.origin}/v1`,
    ...env,
  });
};

/** Ten tokens in, five out. */
const [AT_ACME, AT_BETA] = [20_000_000n, 40_000_000n];

const booked = (answer: Answer): unknown[] => {
  const { state, statusCode, providerId, promptTokens, completionTokens } = callRow(gateway, answer);
  return [state, statusCode, providerId, promptTokens, completionTokens];
};

const noChoice = json({ ...completion(''), choices: [] });

const gemini = (finishReason: string, parts: object[] = []): Reply =>
  json({
    candidates: [{ content: { role: 'model', parts }, finishReason }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 },
  });

describe('an answer that cannot be used costs what the provider reported', () => {
  it.each<[string, string, Reply]>([
    ['no choice', 'acme/large', noChoice],
    ['a choice without a message', 'acme/large', json({ ...completion(''), choices: [{ index: 0, message: null }] })],
    ['an error inside a success', 'acme/large', json({ error: { message: 'broken' }, usage: USAGE })],
    [
      'a message of Anthropic without content',
      'anthropic/claude-sonnet-4.5',
      json({ type: 'message', content: null, usage: { input_tokens: 10, output_tokens: 5 } }),
    ],
    [
      'an answer of Gemini without candidates',
      'google/gemini-2.5-flash',
      json({ candidates: [], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 } }),
    ],
  ])('of a chat: %s', async (_, model, reply) => {
    await start();
    first.begin(reply);

    const answer = await chat(gateway, hello({ model }));

    const [provider] = model.split('/');
    expect([answer.status, booked(answer)]).toEqual([502, ['settled', 502, provider, 10, 5]]);
    expect(callRow(gateway, answer).cost).toBeGreaterThan(0n);
  });

  it.each<[string, string, Reply, number]>([
    ['text in place of the image', 'google/gemini-2.5-flash-image', gemini('STOP', [{ text: 'No.' }]), 502],
    ['an end without an image', 'google/gemini-2.5-flash-image', gemini('NO_IMAGE'), 502],
    ['an image that is filtered', 'google/gemini-2.5-flash-image', gemini('IMAGE_SAFETY'), 400],
    ['no data', 'openai/gpt-image-2', json({ data: [], usage: { input_tokens: 10, output_tokens: 5 } }), 502],
    [
      'data that is no base64',
      'openai/gpt-image-2',
      json({ data: [{ b64_json: '<script>' }], usage: { input_tokens: 10, output_tokens: 5 } }),
      502,
    ],
  ])('of an image: %s', async (_, model, reply, status) => {
    await start();
    first.begin(reply);
    const { id, token } = addKey(gateway, { usageLimit: '5' });

    const answer = await draw(gateway, { ...fox({ size: undefined }), model }, { token });

    const [provider] = model.split('/');
    expect([answer.status, booked(answer)]).toEqual([status, ['settled', status, provider, 10, 5]]);
    const { cost } = callRow(gateway, answer);
    expect(cost).toBeGreaterThan(0n);
    expect(keySums(gateway, id)).toMatchObject({ usage: cost, reserved: 0n });
  });

  it('of an image stream that ends in no image', async () => {
    await start();
    const partial = { type: 'image_generation.partial_image', b64_json: 'aGk=', partial_image_index: 0 };
    const usage = { input_tokens: 10, output_tokens: 5 };
    first.begin(events(partial, { type: 'image_generation.completed', b64_json: '<script>', usage }));

    const body = { ...fox({ size: undefined }), model: 'openai/gpt-image-2', stream: true, partial_images: 1 };
    const answer = await draw(gateway, body);

    expect(booked(answer)).toEqual(['settled', 502, 'openai', 10, 5]);
    expect(callRow(gateway, answer).cost).toBeGreaterThan(0n);
  });

  it('of a stream that breaks before it says anything', async () => {
    await start();
    first.begin(events({ ...chunk({ role: 'assistant' }), usage: USAGE }, { error: { message: 'broken' } }));

    const answer = await chat(gateway, hello({ model: 'acme/large', stream: true }));

    expect([answer.status, booked(answer)]).toEqual([502, ['settled', 502, 'acme', 10, 5]]);
    expect(callRow(gateway, answer).cost).toBe(AT_ACME);
  });
});

describe('a call whose first attempt failed and is paid for', () => {
  it('costs both attempts, and the answer says so', async () => {
    await start();
    first.begin(noChoice);
    second.begin(json(completion('Hi')));
    const { id, token } = addKey(gateway, { usageLimit: '1' });

    const answer = await chat(gateway, hello({ model: 'large', max_tokens: 100 }), { token });

    const { usage } = completionOf(answer);
    expect(usage).toMatchObject({
      prompt_tokens: 10,
      completion_tokens: 5,
      cost: 0.00006,
      info: 'The cost includes earlier attempts of this call, which failed and were charged for.',
    });
    expect(booked(answer)).toEqual(['settled', 200, 'beta', 20, 10]);
    expect(callRow(gateway, answer).cost).toBe(AT_ACME + AT_BETA);
    expect(keySums(gateway, id)).toMatchObject({ usage: AT_ACME + AT_BETA, reserved: 0n });
  });

  it('costs both attempts when it is streamed', async () => {
    await start();
    first.begin(events({ ...chunk({ role: 'assistant' }), usage: USAGE }, { error: { message: 'broken' } }));
    second.begin(events(chunk({ content: 'Hi' }, 'stop'), { ...chunk({}), choices: [], usage: USAGE }));

    const answer = await chat(gateway, hello({ model: 'large', stream: true }));

    expect(booked(answer)).toEqual(['settled', 200, 'beta', 20, 10]);
    expect(callRow(gateway, answer).cost).toBe(AT_ACME + AT_BETA);
  });

  it('costs each attempt that we gave up', async () => {
    await start({ FIRST_BYTE_TIMEOUT_MS: '300' });
    first.begin(() => {});
    second.begin(() => {});

    const answer = await chat(gateway, hello({ model: 'large' }));

    const { cost, promptTokens: tokens } = callRow(gateway, answer);
    expect([answer.status, first.received.length, second.received.length]).toEqual([504, 1, 1]);
    // The same estimate twice, at one dollar a million and at two.
    expect(cost).toBe((BigInt(tokens ?? 0) / 2n) * 3_000_000n);
  });

  it('is not tried again where the limit has no room for what was spent and another attempt', async () => {
    await start();
    first.begin(noChoice);
    second.begin(json(completion('Hi')));
    // What the call holds back takes all of it.
    const { id, token } = addKey(gateway, { usageLimit: '0.01' });

    const answer = await chat(gateway, hello({ model: 'large' }), { token });

    expect([answer.status, errorOf(answer).code, second.received.length]).toEqual([502, 'upstream_error', 0]);
    expect(keySums(gateway, id)).toMatchObject({ usage: AT_ACME, reserved: 0n });
  });

  it('is not tried again once its key may not be used any more', async () => {
    await start();
    const { id, token } = addKey(gateway, { usageLimit: '1' });
    first.begin((response, received) => {
      disable(gateway, id);
      return noChoice(response, received);
    });
    second.begin(json(completion('Hi')));

    const answer = await chat(gateway, hello({ model: 'large', max_tokens: 100 }), { token });

    expect([answer.status, errorOf(answer).code, second.received.length]).toEqual([401, 'api_key_disabled', 0]);
    expect(keySums(gateway, id)).toMatchObject({ usage: AT_ACME, reserved: 0n });
  });
});
