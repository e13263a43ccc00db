// POST /v1/chat/completions: what an upstream that reports no usage is taken to have used.
import { once } from 'node:events';
import { request } from 'node:http';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chat, completionOf, errorOf, eventsOf, hello } from '../../support/chat.ts';
import { addKey, startGateway, type TestGateway } from '../../support/gateway.ts';
import { callRow, settled } from '../../support/rows.ts';
import {
  chunk,
  completion,
  cutAfter,
  events,
  failure,
  json,
  startUpstream,
  type TestUpstream,
  USAGE,
  upstreamEnv,
  writeEvents,
} from '../../support/upstream.ts';

let upstream: TestUpstream;
let gateway: TestGateway;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway(upstreamEnv('acme', upstream.origin, 'large', 'large=2/8'));
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

/** By OpenAI's count: 3 for a chat, 4 for each message. */
const FORM = 3 + 4;

const ESTIMATED = 'The provider reported no usage: token counts are estimated.';
const ROUGH = `${ESTIMATED} The estimate is rough: not all of the text was counted.`;

const ask = (more: object = {}) => hello({ model: 'large', ...more });

const message = (more: object): object =>
  completion('', {
    usage: undefined,
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...more }, finish_reason: 'stop' }],
  });

describe('the prompt of an estimate', () => {
  const tool = { type: 'function', function: { name: 'weather', parameters: { type: 'object' } } };
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } };

  it.each([
    ['a text', [{ role: 'user', content: 'Hello, world!' }], {}, FORM + 4],
    ['text in parts', [{ role: 'user', content: [{ type: 'text', text: 'Hello, world!' }] }], {}, FORM + 4],
    ['each message', [hello().messages, hello().messages].flat(), {}, FORM + 1 + 4 + 1],
    ['a name', [{ role: 'user', name: 'Ann', content: 'Hello' }], {}, FORM + 1 + 1 + 1],
    ['images by an allowance, not their bytes', [{ role: 'user', content: [image, image] }], {}, FORM + 2 * 765],
    ['tools', [{ role: 'user', content: 'Hello' }], { tools: [tool] }, FORM + 1 + countTokens(JSON.stringify([tool]))],
  ])('counts %s', async (_, messages, more, tokens) => {
    upstream.begin(json(completion('Hello', { usage: undefined })));

    const { usage } = completionOf(await chat(gateway, ask({ messages, ...more })));

    expect([usage.prompt_tokens, usage.completion_tokens, usage.info]).toEqual([tokens, 1, ESTIMATED]);
  });

  it('of more text than is counted says that it is rough', async () => {
    upstream.begin(json(completion(' the', { usage: undefined })));
    const text = ' the'.repeat(300_000);

    const { usage } = completionOf(await chat(gateway, ask({ messages: [{ role: 'user', content: text }] })));

    expect([usage.prompt_tokens, usage.info]).toEqual([FORM + 300_000, ROUGH]);
  });
});

describe('the completion of an estimate', () => {
  const call = (name: string, args: string): object => ({
    id: 'c',
    type: 'function',
    function: { name, arguments: args },
  });

  it.each([
    ['text and thoughts', { content: 'Hello, world!', reasoning: 'Hello' }, 4 + 1],
    ['a refusal', { refusal: 'Hello, world!' }, 4],
    ['the calls of tools, but for their ids', { tool_calls: [call('weather', '{}'), call('weather', '{}')] }, 4],
    ['pictures by an allowance', { images: [{ type: 'image_url', image_url: { url: 'data:,' } }] }, 1290],
    ['nothing', {}, 0],
  ])('counts %s', async (_, said, tokens) => {
    upstream.begin(json(message(said)));

    const { usage } = completionOf(await chat(gateway, ask()));

    expect([usage.completion_tokens, usage.info]).toEqual([tokens, ESTIMATED]);
  });

  it('never exceeds what the call of a key with a limit was held to, which is all that was held back for it', async () => {
    const key = addKey(gateway, { usageLimit: '1' });
    const held = ask({ max_tokens: 2 });
    const long = 'Hello, world! Hello, world!';
    upstream.begin(json(completion(long, { usage: undefined })));
    const whole = completionOf(await chat(gateway, held, key));
    upstream.begin(events(chunk({ content: long }), chunk({}, 'stop'), '[DONE]'));
    const streamed = eventsOf((await chat(gateway, { ...held, stream: true }, key)).text).chunks.at(-1);

    expect([whole.usage.completion_tokens, streamed?.usage?.completion_tokens]).toEqual([2, 2]);
  });

  it('of a stream is that of its choices put together, each by itself', async () => {
    const piece = (index: number, content: string) => ({ index, delta: { content }, finish_reason: null });
    const end = (index: number) => ({ index, delta: {}, finish_reason: 'stop' });
    upstream.begin(
      events(
        { ...chunk({}), choices: [piece(0, 'antidis'), piece(1, 'Hello, ')] },
        { ...chunk({}), choices: [piece(0, 'establishmentarianism'), piece(1, 'world!')] },
        { ...chunk({}), choices: [end(0), end(1)] },
      ),
    );

    const { usage } = eventsOf((await chat(gateway, ask({ stream: true, n: 2 }))).text).chunks.at(-1) ?? {};

    expect([usage?.completion_tokens, usage?.info]).toEqual([6 + 4, ESTIMATED]);
  });

  it('of a long stream takes the ratio of its beginning for the rest', async () => {
    const piece = ' the'.repeat(4096);
    upstream.begin(events(...Array.from({ length: 10 }, () => chunk({ content: piece })), chunk({}, 'stop')));

    const { usage } = eventsOf((await chat(gateway, ask({ stream: true }))).text).chunks.at(-1) ?? {};

    expect([usage?.completion_tokens, usage?.info]).toEqual([40_960, ROUGH]);
  });
});

describe('no estimate is made', () => {
  it('of a failed call: nothing is booked', async () => {
    upstream.begin(failure(400, 'no'));

    const answer = await chat(gateway, ask());

    expect(errorOf(answer).code).toBe('invalid_request');
    expect(callRow(gateway, answer)).toMatchObject({ cost: 0n, promptTokens: 0, usageEstimated: 0 });
  });

  it('of a stream that broke: nothing is booked but what the provider reported', async () => {
    upstream.begin(cutAfter(chunk({ content: 'Hello' })));
    const silent = await chat(gateway, ask({ stream: true }));
    upstream.begin(cutAfter(chunk({ content: 'Hello' }, null, { usage: USAGE }), chunk({ content: 'Hello' })));
    const told = await chat(gateway, ask({ stream: true }));

    expect(callRow(gateway, silent)).toMatchObject({ cost: 0n, completionTokens: 0, usageEstimated: 0 });
    expect(callRow(gateway, told)).toMatchObject({ cost: 60_000_000n, completionTokens: 5, usageEstimated: 0 });
  });
});

describe('a client that leaves', () => {
  /** Begins a stream of which the upstream sends these chunks, leaves when the last is there, and gives the settled row. */
  async function leaveAfter(...chunks: object[]) {
    upstream.begin((response) => writeEvents(response, ...chunks));
    const outgoing = request(`${gateway.origin}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${gateway.firstRun.gatewayKey}`, 'content-type': 'application/json' },
    });
    outgoing.on('error', () => {});
    outgoing.end(JSON.stringify(ask({ stream: true })));
    const [answer] = await once(outgoing, 'response');
    let text = '';
    for await (const bytes of answer) {
      text += String(bytes);
      if (text.split('\n\n').length > chunks.length) break;
    }
    outgoing.destroy();
    return settled(gateway, String(answer.headers['x-request-id']));
  }

  it('is billed an estimate of what was said since the provider last reported', async () => {
    const row = await leaveAfter(
      chunk({ content: 'Hello' }, null, { usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 } }),
      chunk({ content: 'Hello, ' }),
      chunk({ content: 'world!' }),
    );

    expect(row).toMatchObject({
      statusCode: 499,
      promptTokens: 10,
      completionTokens: 1 + 4,
      usageEstimated: 1,
      cost: 10n * 2_000_000n + 5n * 8_000_000n,
    });
  });

  it('is billed what the provider reported where it does so as it goes: each report tells of all before it', async () => {
    const soFar = { usage: { prompt_tokens: 10, completion_tokens: 3, total_tokens: 13 } };

    const row = await leaveAfter(chunk({ content: 'Hello' }), chunk({ content: ', you' }, null, soFar));

    expect(row).toMatchObject({ promptTokens: 10, completionTokens: 3, usageEstimated: 0 });
  });
});
