import { assert, asyncProperty, nat, uniqueArray } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_USAGE, type Usage } from '../../../src/domain/usage.ts';
import type { StreamedResponse } from '../../../src/net/exchange.ts';
import { anthropicAdapter } from '../../../src/providers/anthropic/anthropic.ts';
import type { UpstreamChunk } from '../../../src/providers/wire/adapter.ts';
import { sample, streamed } from '../answers.ts';

async function read(response: StreamedResponse): Promise<UpstreamChunk[]> {
  const chunks: UpstreamChunk[] = [];
  for await (const chunk of anthropicAdapter.parseStream(response)) chunks.push(chunk);
  return chunks;
}

const ofSample = (name: string) => read(streamed(sample(`anthropic/${name}`)));
const sse = (...events: object[]): string => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
const readEvents = (...events: object[]) => read(streamed(sse(...events)));

const START = { type: 'message_start', message: { model: 'm', usage: { input_tokens: 1, output_tokens: 1 } } };
const begin = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block });
const piece = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
const said = (text: string, index = 0) => piece(index, { type: 'text_delta', text });
const TEXT = begin(0, { type: 'text', text: '' });
const end = (index: number) => ({ type: 'content_block_stop', index });
const ending = (reason: string, more: object = {}) => ({
  type: 'message_delta',
  delta: { stop_reason: reason },
  ...more,
});
const STOP = { type: 'message_stop' };

/** A chunk of the model with this delta. */
const chunkOf =
  (model: string) =>
  (delta: object, more: object = {}) => ({
    model,
    choices: [{ index: 0, delta, finish_reason: null }],
    usage: undefined,
    fields: {},
    ...more,
  });

/** What the prompt took, told at the start. */
const startOf = (model: string, usage: Partial<Usage> = { promptTokens: 1, completionTokens: 1 }) => ({
  model,
  choices: [],
  usage: { ...NO_USAGE, ...usage },
  fields: {},
});

const finish = (reason: string, delta: object = {}) => ({ choices: [{ index: 0, delta, finish_reason: reason }] });

const SAMPLES = ['text.sse', 'tools.sse', 'search.sse'];

describe('parseStream', () => {
  it('reads a text: what the prompt took, the role in the first delta, then its pieces, the end with its usage', async () => {
    const chunk = chunkOf('claude-haiku-4-5-20251001');
    const response = streamed(sample('anthropic/text.sse'));
    expect(await read(response)).toEqual([
      startOf('claude-haiku-4-5-20251001', { promptTokens: 35, completionTokens: 1, cachedTokens: 10 }),
      chunk({ role: 'assistant', content: 'Grüß' }),
      chunk({ content: ' Gott 👋' }),
      chunk(
        {},
        { ...finish('stop'), usage: { ...NO_USAGE, promptTokens: 35, completionTokens: 15, cachedTokens: 10 } },
      ),
    ]);
    expect(response.drained).toBe(1);
  });

  it('reads thoughts, their signatures, and calls whose index is not their block’s', async () => {
    const chunk = chunkOf('claude-sonnet-4-6');
    const thought = (more: object) => ({ type: 'reasoning.text', ...more, format: 'anthropic', index: 0 });
    const call = (index: number, id: string, name: string) =>
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] });
    const input = (index: number, text: string) => chunk({ tool_calls: [{ index, function: { arguments: text } }] });
    expect(await ofSample('tools.sse')).toEqual([
      startOf('claude-sonnet-4-6', { promptTokens: 472, completionTokens: 2 }),
      chunk({ role: 'assistant', reasoning: 'Two ', reasoning_details: [thought({ text: 'Two ' })] }),
      chunk({ reasoning: 'calls.', reasoning_details: [thought({ text: 'calls.' })] }),
      chunk({ reasoning_details: [thought({ signature: 'EqQBCgIYAhIM' })] }),
      chunk({
        reasoning_details: [{ type: 'reasoning.encrypted', data: 'EmwKAhgBEgy3va', format: 'anthropic', index: 1 }],
      }),
      chunk({ content: 'I look.' }),
      call(0, 'toolu_01A', 'weather'),
      input(0, '{"city": "Par'),
      input(0, 'is"}'),
      call(1, 'toolu_01B', 'now'),
      input(1, '{}'),
      call(2, 'toolu_01C', 'zone'),
      input(2, '{"of":"Paris"}'),
      chunk(
        {},
        {
          ...finish('tool_calls'),
          usage: { ...NO_USAGE, promptTokens: 472, completionTokens: 89, reasoningTokens: 20 },
        },
      ),
    ]);
  });

  it('passes over the provider’s own tools and what is of tomorrow, and tells the sources of a text', async () => {
    const chunk = chunkOf('claude-opus-5');
    const source = { url: 'https://news.example/tower', title: 'Towers', start_index: 6, end_index: 11 };
    expect(await ofSample('search.sse')).toEqual([
      startOf('claude-opus-5', { promptTokens: 100, completionTokens: 3 }),
      chunk({ role: 'assistant', content: 'Well, ' }),
      chunk({ content: '828 m' }),
      chunk({ annotations: [{ type: 'url_citation', url_citation: source }] }),
      chunk(
        {},
        {
          ...finish('stop'),
          usage: { ...NO_USAGE, promptTokens: 9000, completionTokens: 60, webSearches: 1 },
          fields: { container: { id: 'c_1' } },
        },
      ),
    ]);
  });

  it('gives an answer that came as a forced call back as content', async () => {
    const block = begin(0, { type: 'tool_use', id: 'a', name: 'structured_answer_for_gateway', input: {} });
    const input = (text: string) => piece(0, { type: 'input_json_delta', partial_json: text });
    const chunk = chunkOf('m');
    expect(await readEvents(START, block, input('{"a"'), input(':1}'), end(0), ending('tool_use'), STOP)).toEqual([
      startOf('m'),
      chunk({ role: 'assistant', content: '{"a"' }),
      chunk({ content: ':1}' }),
      chunk({}, { ...finish('stop'), usage: { ...NO_USAGE, promptTokens: 1, completionTokens: 1 } }),
    ]);
  });

  it('says nothing of a choice before its first piece, so that another provider can take over until then', async () => {
    const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    const stream = anthropicAdapter.parseStream(streamed(sse(START, { type: 'ping' }, TEXT, overloaded)));
    const chunks = stream[Symbol.asyncIterator]();
    expect(await chunks.next()).toEqual({ done: false, value: startOf('m') });
    await expect(chunks.next()).rejects.toMatchObject({
      name: 'UpstreamError',
      errorType: 'upstream_error',
      status: 529,
      retryable: true,
      message: 'The provider failed: Overloaded',
    });
  });

  it('tells an end without a word, with the role and why it was refused', async () => {
    const details = { type: 'refusal', category: 'bio', explanation: 'Not this.' };
    const delta = { stop_reason: 'refusal', stop_details: details };
    expect(await readEvents(START, { type: 'message_delta', delta }, STOP)).toEqual([
      startOf('m'),
      chunkOf('m')(
        {},
        {
          ...finish('content_filter', { role: 'assistant', refusal: 'Not this.' }),
          usage: { ...NO_USAGE, promptTokens: 1, completionTokens: 1 },
          fields: { stop_details: details },
        },
      ),
    ]);
  });

  it('takes usage from every event that has it, the last one of each field', async () => {
    const kimi = { type: 'message_start', message: { model: 'k', usage: { input_tokens: 1000, output_tokens: 0 } } };
    const first = { type: 'message_delta', delta: {}, usage: { output_tokens: 5 } };
    const last = ending('end_turn', { usage: { input_tokens: 200, cache_read_input_tokens: 800, output_tokens: 7 } });
    const after = { type: 'message_delta', delta: {}, usage: { output_tokens: 6 } };
    const chunks = await readEvents(kimi, TEXT, said('a'), first, end(0), last, after, STOP);
    expect(chunks.map(({ usage, choices }) => [choices.length, usage])).toEqual([
      [0, { ...NO_USAGE, promptTokens: 1000 }],
      [1, undefined],
      [0, { ...NO_USAGE, promptTokens: 1000, completionTokens: 5 }],
      [1, { ...NO_USAGE, promptTokens: 1000, completionTokens: 7, cachedTokens: 800 }],
      [0, { ...NO_USAGE, promptTokens: 1000, completionTokens: 6, cachedTokens: 800 }],
    ]);
  });

  it.each([
    ['authentication_error', 401, 'credential', "The provider refused the gateway's credential."],
    ['rate_limit_error', 429, 'rate_limited', 'The provider limits the rate of calls: Key [redacted]'],
    ['invalid_request_error', 400, 'rejected', 'The provider rejected the request: Key [redacted]'],
    ['api_error', 500, 'upstream_error', 'The provider failed: Key [redacted]'],
    ['error_of_tomorrow', 500, 'upstream_error', 'The provider failed: status 500'],
  ])('ends with the error when the stream tells a %s', async (type, status, errorType, message) => {
    const text = `event: error\ndata: ${JSON.stringify({ error: { type, message: 'Key sk-ant-123456789' } })}\n\n`;
    const reading = read(streamed(sse(START, TEXT, said('a')), text, sse(ending('end_turn'), STOP)));
    await expect(reading).rejects.toMatchObject({ status, errorType, message });
  });

  it.each([
    ['no JSON', 'data: {"type":\n\n'],
    ['no object', 'data: []\n\n'],
    ['a piece of a block that never began', sse(said('a', 4))],
    ['an end of a block that never began', sse(end(4))],
    ['a block without an index', sse({ type: 'content_block_start', content_block: { type: 'text' } })],
    ['a block that is none', sse({ type: 'content_block_start', index: 1, content_block: 'x' })],
    ['a call without a name', sse(begin(1, { type: 'tool_use', id: 'a' }))],
    ['more after the end', sse(ending('end_turn'), said('b'))],
    [
      'too many blocks',
      sse(...Array.from({ length: 1001 }, (_, index) => [begin(index + 1, { type: 'x' }), end(index + 1)]).flat()),
    ],
    ['too many blocks at once', sse(...Array.from({ length: 17 }, (_, index) => begin(index + 1, { type: 'x' })))],
  ])('refuses %s', async (_name, text) => {
    const reading = read(streamed(sse(START, TEXT, said('a')), text, sse(ending('end_turn'), STOP)));
    await expect(reading).rejects.toMatchObject({ name: 'UpstreamError', errorType: 'bad_response', retryable: true });
  });

  it('leaves out the citations beyond half a million characters, for they wait for the end of their block', async () => {
    const cited = (url: string) => piece(0, { type: 'citations_delta', citation: { url, title: 't' } });
    const urls = Array.from({ length: 12 }, (_, n) => `https://${'x'.repeat(50_000)}/${n}`);
    const chunks = await readEvents(START, TEXT, said('a'), ...urls.map(cited), end(0), ending('end_turn'), STOP);
    const named = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.annotations ?? []));
    expect(named).toHaveLength(10);
  });

  it('refuses an event that never ends', async () => {
    const endless = streamed(`data: "${'a'.repeat(9_000_000)}`, 'a'.repeat(9_000_000));
    await expect(read(endless)).rejects.toMatchObject({ name: 'TransportError', kind: 'too_large' });
  });
});

describe.each(SAMPLES)('the stream %s', (name) => {
  const whole = sample(`anthropic/${name}`);
  const events = whole.split(/(?<=\n\n)/);

  it('gives the same chunks however its bytes are split', async () => {
    const bytes = Buffer.from(whole);
    const wanted = await ofSample(name);
    const splits = uniqueArray(nat(bytes.length), { maxLength: 40 });
    await assert(
      asyncProperty(splits, async (positions) => {
        const cuts = [0, ...positions.sort((a, b) => a - b), bytes.length];
        const response = streamed();
        const chunks = (async function* () {
          for (const [index, cut] of cuts.entries()) yield bytes.subarray(cut, cuts[index + 1]);
        })();
        expect(await read({ ...response, chunks })).toEqual(wanted);
      }),
      { numRuns: 200 },
    );
  });

  it.each(events.map((_, count) => count))('is cut when only its first %i events come', async (count) => {
    const response = streamed(events.slice(0, count).join(''));
    await expect(read(response)).rejects.toMatchObject({
      errorType: 'bad_response',
      retryable: true,
      message: count === 0 ? 'The provider sent an empty stream.' : "The provider's stream was cut off.",
    });
    expect(response.drained).toBe(0);
  });

  it('is cut when its end is missing and its last words came twice', async () => {
    const [stop = ''] = events.slice(-1);
    await expect(read(streamed(stop, whole))).rejects.toMatchObject({ errorType: 'bad_response' });
  });
});
