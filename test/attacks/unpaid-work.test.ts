// Threat: a provider works and is not paid: our own timeouts end the call, or the output is in a field that nobody counts.
// Defence: what a provider has read is billed when we give it up, and all that arrived of an answer is counted, wherever it stood.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { chat, hello } from '../support/chat.ts';
import { metricsOf, valuesOf } from '../support/exposition.ts';
import { addKey, startGateway, type TestGateway } from '../support/gateway.ts';
import { callRow, keySums } from '../support/rows.ts';
import { chunk, type Reply, startUpstream, type TestUpstream, upstreamEnv, writeEvents } from '../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
});

afterEach(() => gateway.close());

afterAll(() => upstream.close());

const start = async (env: Readonly<Record<string, string>>): Promise<void> => {
  gateway = await startGateway({ ...upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'), ...env });
};

const silent: Reply = () => {};

/** Begins a JSON answer and never ends it. */
const stalling: Reply = (response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('{"choices":[');
};

/** Sends these deltas and then nothing. */
const saying =
  (...deltas: object[]): Reply =>
  (response) =>
    writeEvents(response, ...deltas.map((delta) => chunk(delta)));

describe('a provider that we give up', () => {
  it.each<[string, string, Reply, boolean]>([
    ['that never answers', 'FIRST_BYTE_TIMEOUT_MS', silent, false],
    ['that never begins its stream', 'FIRST_BYTE_TIMEOUT_MS', silent, true],
    ['that stalls within a whole answer', 'IDLE_TIMEOUT_MS', stalling, false],
    ['that takes too long for the whole answer', 'TOTAL_TIMEOUT_MS', stalling, false],
    ['that takes too long before its stream says something', 'TOTAL_TIMEOUT_MS', saying({ role: 'assistant' }), true],
  ])('%s is paid for the prompt that it has read (%s)', async (_, variable, reply, stream) => {
    await start({ [variable]: '300' });
    upstream.begin(reply);

    const answer = await chat(gateway, hello({ model: 'large', stream }));

    const row = callRow(gateway, answer);
    expect([answer.status, row.state, row.usageEstimated, row.providerId]).toEqual([504, 'settled', 1, 'acme']);
    expect(row.promptTokens).toBeGreaterThan(5);
    expect([row.cost, row.completionTokens]).toEqual([BigInt(row.promptTokens ?? 0) * 2_000_000n, 0]);
  });

  it('because its answer is too large is paid for the prompt too', async () => {
    await start({ MAX_RESPONSE_BYTES: '1000' });
    upstream.begin((response) => void response.end('x'.repeat(2000)));

    const answer = await chat(gateway, hello({ model: 'large' }));

    expect([answer.status, callRow(gateway, answer).cost > 0n]).toEqual([502, true]);
  });

  it('because its answer holds too much is paid what was held back, and does not rest for it', async () => {
    await start({});
    const { id, token } = addKey(gateway, { usageLimit: '1' });
    const values = `[${'0,'.repeat(1_100_000)}0]`;
    upstream.begin((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(`{"id":"x","choices":[],"logprobs":${values}}`);
    });

    const costs = [];
    for (let call = 0; call < 4; call += 1) {
      const answer = await chat(gateway, hello({ model: 'large', max_tokens: 1000 }), { token });
      expect(answer.status).toBe(502);
      costs.push(callRow(gateway, answer).cost);
    }

    // At least the output that was asked for, at 8 USD per million tokens.
    for (const cost of costs) expect(cost).toBeGreaterThanOrEqual(1000n * 8_000_000n);
    expect(keySums(gateway, id)).toMatchObject({ usage: costs.reduce((a, b) => a + b), reserved: 0n });
    expect(valuesOf(await metricsOf(gateway), 'resting_targets')).toEqual({ '': 0 });
  });

  it('cannot be had for nothing by a key with a limit: what it has read counts', async () => {
    await start({ FIRST_BYTE_TIMEOUT_MS: '300' });
    const { id, token } = addKey(gateway, { usageLimit: '1' });
    upstream.begin(silent);

    const answer = await chat(gateway, hello({ model: 'large', max_tokens: 5 }), { token });

    const { usage, reserved } = keySums(gateway, id);
    expect([usage, reserved]).toEqual([callRow(gateway, answer).cost, 0n]);
    expect(usage).toBeGreaterThan(0n);
  });

  it('before it had the request is paid nothing', async () => {
    await start({ CONNECT_TIMEOUT_MS: '300', UPSTREAM_ACME_BASE_URL: 'http://127.0.0.1:1/v1' });

    const answer = await chat(gateway, hello({ model: 'large' }));

    expect([answer.status, callRow(gateway, answer).cost]).toEqual([502, 0n]);
  });
});

const WORDS = 'the quick brown fox jumps over the lazy dog '.repeat(20);

describe('output of a stream that we cut', () => {
  it.each<[string, object]>([
    ['the text', { content: WORDS }],
    ['a refusal', { refusal: WORDS }],
    ['thoughts', { reasoning: WORDS }],
    ['thoughts by their other name', { reasoning_content: WORDS }],
    ['thoughts in detail', { reasoning_details: [{ type: 'reasoning.text', text: WORDS }] }],
    ['thoughts that are encrypted', { reasoning_details: [{ type: 'reasoning.encrypted', data: WORDS }] }],
    ['the arguments of a function', { tool_calls: [{ index: 0, function: { name: 'f', arguments: WORDS } }] }],
    ['the input of a custom tool', { tool_calls: [{ index: 0, type: 'custom', custom: { name: 'f', input: WORDS } }] }],
    ['the old form of a call', { function_call: { name: 'f', arguments: WORDS } }],
    ['the transcript of what is spoken', { audio: { id: 'a', transcript: WORDS } }],
    ['the sound of what is spoken', { audio: { id: 'a', data: 'A'.repeat(160_000) } }],
    ['a field that nobody here knows', { something_new: { deep: [{ text: WORDS }] } }],
  ])('is counted: %s', async (_, delta) => {
    await start({ TOTAL_TIMEOUT_MS: '400' });
    upstream.begin(saying({ role: 'assistant', content: 'Now' }, delta));

    const answer = await chat(gateway, hello({ model: 'large', stream: true }));

    const row = callRow(gateway, answer);
    expect([row.state, row.statusCode, row.usageEstimated]).toEqual(['settled', 504, 1]);
    expect(row.completionTokens).toBeGreaterThanOrEqual(180);
  });

  it('is counted once where a provider sends it under several names', async () => {
    await start({ TOTAL_TIMEOUT_MS: '400' });
    const details = [{ type: 'reasoning.text', text: WORDS }];
    upstream.begin(saying({ reasoning: WORDS, reasoning_content: WORDS, reasoning_details: details }));

    const answer = await chat(gateway, hello({ model: 'large', stream: true }));

    expect(callRow(gateway, answer).completionTokens).toBeLessThan(250);
  });

  it('is counted too when the provider stalls in the middle of it', async () => {
    await start({ IDLE_TIMEOUT_MS: '300' });
    upstream.begin(saying({ content: WORDS }));

    const answer = await chat(gateway, hello({ model: 'large', stream: true }));

    expect(callRow(gateway, answer).completionTokens).toBeGreaterThanOrEqual(180);
  });
});
