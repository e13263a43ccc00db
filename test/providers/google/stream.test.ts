import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import type { StreamedResponse } from '../../../src/net/exchange.ts';
import type { UpstreamChunk } from '../../../src/providers/wire/adapter.ts';
import { sample, streamed } from '../answers.ts';
import { chunksOf, countingAdapter, events } from '../google-samples.ts';

const fields = { responseId: 's1' };
const model = 'gemini-3-flash-preview';
const chunk = (delta: object, usage: object | undefined, index = 0) => ({
  model,
  choices: [{ index, delta, finish_reason: null }],
  usage: usage === undefined ? undefined : { ...NO_USAGE, ...usage },
  fields,
});
const end = (finish_reason: string) => ({
  model,
  choices: [{ index: 0, delta: {}, finish_reason }],
  usage: undefined,
  fields: {},
});

const piece = (text: string, more: object = {}) => ({ candidates: [{ content: { parts: [{ text }] }, ...more }] });
const STOP = { finishReason: 'STOP' };
const BAD = { name: 'UpstreamError', errorType: 'bad_response', retryable: true };

/** A stream whose bytes come in these pieces. */
function inPieces(pieces: readonly Buffer[]): StreamedResponse {
  const chunks = (async function* () {
    yield* pieces;
  })();
  return { ...streamed(), chunks };
}

async function read(pieces: readonly Buffer[]): Promise<UpstreamChunk[]> {
  const chunks: UpstreamChunk[] = [];
  for await (const one of countingAdapter().parseStream(inPieces(pieces))) chunks.push(one);
  return chunks;
}

describe('parseStream', () => {
  it('reads thoughts, text, the signature of an empty part at the end, and takes usage from the last event', async () => {
    const detail = { type: 'reasoning.encrypted', data: 'c2lnLWVuZA==', format: 'google', index: 0 };
    expect(await chunksOf(sample('google/stream.sse'))).toEqual([
      chunk(
        { role: 'assistant', reasoning: 'Weighing both. ' },
        { promptTokens: 11, completionTokens: 20, reasoningTokens: 20 },
      ),
      chunk({ content: 'Größer ist ' }, { promptTokens: 11, completionTokens: 43, reasoningTokens: 40 }),
      chunk({ content: '9,9 – 🎉' }, { promptTokens: 11, completionTokens: 47, reasoningTokens: 40 }),
      chunk(
        { reasoning_details: [detail] },
        { promptTokens: 11, completionTokens: 47, reasoningTokens: 40, cachedTokens: 4 },
      ),
      end('stop'),
    ]);
  });

  it('reads each call as one fragment, numbered through the stream, with its signature, and ends as tool calls', async () => {
    const call = (index: number, id: string, name: string, args: string, more: object = {}) => ({
      index,
      id,
      type: 'function',
      function: { name, arguments: args },
      ...more,
    });
    const signature = { extra_content: { google: { thought_signature: 'c2lnLWNhbGw=' } } };
    expect(await chunksOf(sample('google/tool-stream.sse'))).toEqual([
      chunk({ role: 'assistant', content: 'Asking ' }, { promptTokens: 40, completionTokens: 1 }),
      chunk(
        { tool_calls: [call(0, 'call_1', 'get_weather', '{"city":"Ulm"}', signature)] },
        { promptTokens: 40, completionTokens: 9 },
      ),
      chunk(
        { tool_calls: [call(1, 'fc_b2', 'get_weather', '{"city":"Graz"}'), call(2, 'call_2', 'get_time', '{}')] },
        { promptTokens: 40, completionTokens: 21 },
      ),
      chunk({}, { promptTokens: 40, completionTokens: 22 }),
      end('tool_calls'),
    ]);
  });

  it.each(['stream.sse', 'tool-stream.sse'])('reads the same from %s however its bytes are split', async (name) => {
    const bytes = Buffer.from(sample(`google/${name}`));
    const whole = await read([bytes]);
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(cuts, async (unsorted) => {
        const bounds = [0, ...unsorted.sort((a, b) => a - b), bytes.length];
        const pieces = bounds.slice(1).map((to, position) => bytes.subarray(bounds[position], to));
        expect(await read(pieces)).toEqual(whole);
      }),
    );
    expect(await read([...bytes].map((byte) => Buffer.of(byte)))).toEqual(whole);
  });

  it.each(['stream.sse', 'tool-stream.sse'])('refuses %s cut behind any event or inside it', async (name) => {
    const all = sample(`google/${name}`).split('\r\n\r\n').slice(0, -1);
    for (let kept = 0; kept < all.length; kept += 1) {
      const whole = all
        .slice(0, kept)
        .map((event) => `${event}\r\n\r\n`)
        .join('');
      await expect(chunksOf(whole)).rejects.toMatchObject(BAD);
      await expect(chunksOf(`${whole}${all[kept]?.slice(0, -9)}`)).rejects.toMatchObject(BAD);
      await expect(chunksOf(`${whole}${all[kept]?.slice(0, -9)}\r\n\r\n`)).rejects.toMatchObject(BAD);
    }
  });

  it('tells an end once, though some models state it with every event', async () => {
    const chunks = await chunksOf(
      events(piece('a', STOP), piece('b', STOP), piece('c', { finishReason: 'MAX_TOKENS' })),
    );
    expect(chunks.map(({ choices }) => choices[0])).toEqual([
      { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null },
      { index: 0, delta: { content: 'b' }, finish_reason: null },
      { index: 0, delta: { content: 'c' }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'length' },
    ]);
  });

  it('keeps an end that came before the last event', async () => {
    const chunks = await chunksOf(events(piece('a', { finishReason: 'SAFETY' }), piece('')));
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null, 'content_filter']);
  });

  it('reads choices that come in turns and ends them together', async () => {
    const first = { candidates: [{ content: { parts: [{ text: 'a' }] }, index: 0 }] };
    const second = { candidates: [{ content: { parts: [{ functionCall: { name: 'f' } }] }, index: 1, ...STOP }] };
    const third = { candidates: [{ content: { parts: [{ functionCall: { name: 'g' } }] }, index: 0, ...STOP }] };
    const call = (id: string, name: string) => ({
      index: 0,
      id,
      type: 'function',
      function: { name, arguments: '{}' },
    });
    expect((await chunksOf(events(first, second, third))).map(({ choices }) => choices)).toEqual([
      [{ index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null }],
      [{ index: 1, delta: { role: 'assistant', tool_calls: [call('call_1', 'f')] }, finish_reason: null }],
      [{ index: 0, delta: { tool_calls: [call('call_2', 'g')] }, finish_reason: null }],
      [
        { index: 0, delta: {}, finish_reason: 'tool_calls' },
        { index: 1, delta: {}, finish_reason: 'tool_calls' },
      ],
    ]);
  });

  it('numbers the signatures and counts the images of the whole stream', async () => {
    const sign = (thoughtSignature: string) => ({ text: 'x', thoughtSignature });
    const image = { inlineData: { mimeType: 'image/png', data: 'AA' } };
    const usageMetadata = { promptTokenCount: 1 };
    const answer = (...parts: object[]) => ({ candidates: [{ content: { parts }, ...STOP }], usageMetadata });
    const chunks = await chunksOf(events(answer(sign('a'), image), answer(sign('b'), sign('c'), image)));
    const details = chunks.map(({ choices }) =>
      choices[0]?.delta.reasoning_details?.map(({ data, index }) => [data, index]),
    );
    expect(details).toEqual([
      [['a', 0]],
      [
        ['b', 1],
        ['c', 2],
      ],
      undefined,
    ]);
    expect(chunks.map(({ usage }) => usage?.images)).toEqual([1, 2, undefined]);
    expect(chunks[0]?.choices[0]?.delta.images).toEqual([
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
    ]);
  });

  it('answers a blocked prompt with a choice that says so', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 4 } };
    const refusal = 'The provider blocked the prompt: SAFETY.';
    expect(await chunksOf(events(blocked))).toEqual([
      {
        model: undefined,
        choices: [{ index: 0, delta: { role: 'assistant', content: null, refusal }, finish_reason: null }],
        usage: { ...NO_USAGE, promptTokens: 4 },
        fields: {},
      },
      { ...end('content_filter'), model: undefined },
    ]);
  });

  it('ends a choice as filtered when the prompt is blocked after it began', async () => {
    const chunks = await chunksOf(events(piece('a'), { promptFeedback: { blockReason: 'OTHER' } }));
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, undefined, 'content_filter']);
  });

  it.each([
    ['an empty body', ''],
    ['usage alone', events({ usageMetadata: { promptTokenCount: 1 } })],
    ['a choice without an end', events(piece('a'))],
    ['an unspecified end', events(piece('a', { finishReason: 'FINISH_REASON_UNSPECIFIED' }))],
    ['one of two choices without an end', events(piece('a', { index: 1 }), piece('b', { index: 0, ...STOP }))],
    ['malformed JSON after the end', `${events(piece('a', STOP))}data: {"candidates":[{\r\n\r\n`],
    ['an event that is no object', 'data: "hello"\r\n\r\n'],
    ['a call that the provider could not read', events(piece('a', { finishReason: 'MALFORMED_FUNCTION_CALL' }))],
    ['an error without a code', events(piece('a', STOP), { error: { message: 'x' } })],
    ['too many choices', events(...Array.from({ length: 129 }, (_, index) => piece('a', { index, ...STOP })))],
  ])('refuses %s as a bad response', async (_name, text) => {
    await expect(chunksOf(text)).rejects.toMatchObject(BAD);
  });

  it.each([
    [429, 'RESOURCE_EXHAUSTED', 'rate_limited', 'The provider limits the rate of calls: status 429'],
    [503, 'UNAVAILABLE', 'upstream_error', 'The provider failed: status 503'],
    [499, 'CANCELLED', 'upstream_error', 'The provider failed: status 503'],
    [403, 'PERMISSION_DENIED', 'credential', "The provider refused the gateway's credential."],
    [400, 'INVALID_ARGUMENT', 'rejected', 'The provider rejected the request: status 400'],
  ])('throws an error %d in the middle as what it is, without its text', async (code, status, errorType, message) => {
    const text = events(piece('a'), { error: { code, status, message: 'secret AIzaTest123456' } });
    await expect(chunksOf(text)).rejects.toMatchObject({ name: 'UpstreamError', errorType, message });
  });

  it('reads how long such an error wants to be left alone', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' }];
    const text = events(piece('a'), { error: { code: 429, status: 'RESOURCE_EXHAUSTED', details } });
    await expect(chunksOf(text)).rejects.toMatchObject({ errorType: 'rate_limited', retryAfterMs: 34_070 });
  });

  it('counts a thousand searches at most, each query once however long it is', async () => {
    const asked = (...webSearchQueries: string[]) => piece('a', { groundingMetadata: { webSearchQueries } });
    const usage = { usageMetadata: { promptTokenCount: 1 }, modelVersion: 'gemini-3-pro' };
    const long = 'x'.repeat(5000);
    const few = await chunksOf(events(asked(long, `${long}y`), { ...asked(long), ...usage }, piece('', STOP)));
    const queries = Array.from({ length: 1500 }, (_, n) => `query ${n}`);
    const many = await chunksOf(events({ ...asked(...queries), ...usage }, piece('', STOP)));
    expect([few[1]?.usage?.webSearches, many[0]?.usage?.webSearches]).toEqual([2, 1000]);
  });

  it('hands on what came before a malformed event', async () => {
    const seen: unknown[] = [];
    const reading = (async () => {
      const bytes = Buffer.from(`${events(piece('a'))}data: {\r\n\r\n`);
      for await (const one of countingAdapter().parseStream(inPieces([bytes])))
        seen.push(one.choices[0]?.delta.content);
    })();
    await expect(reading).rejects.toMatchObject(BAD);
    expect(seen).toEqual(['a']);
  });
});
