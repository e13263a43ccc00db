import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import { chunksOf, readStream, sample, streamed } from '../answers.ts';

const END = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };

describe('parseStream', () => {
  it('reads a stream, keeps unknown fields, and takes usage from the chunk that carries it', async () => {
    const fields = { service_tier: 'default', system_fingerprint: 'fp_44709d6fcb' };
    const model = 'gpt-4o-mini';
    const response = streamed(sample('openai-stream.sse'));
    expect(await readStream(response)).toEqual([
      {
        model,
        choices: [
          { index: 0, delta: { role: 'assistant', content: '', refusal: null }, logprobs: null, finish_reason: null },
        ],
        usage: undefined,
        fields: { ...fields, obfuscation: 'aB3' },
      },
      {
        model,
        choices: [{ index: 0, delta: { content: 'Hello' }, logprobs: null, finish_reason: null }],
        usage: undefined,
        fields: { ...fields, obfuscation: 'x' },
      },
      {
        model,
        choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
        usage: undefined,
        fields: { ...fields, obfuscation: 'yz' },
      },
      { model, choices: [], usage: { ...NO_USAGE, promptTokens: 9, completionTokens: 2 }, fields },
    ]);
    expect(response.drained).toBe(1);
  });

  it('gives the role first, thoughts their name, and ends without [DONE] when every choice has ended', async () => {
    const chunks = await readStream(streamed(sample('reasoning-stream.sse')));
    expect(chunks.map(({ choices }) => choices[0])).toEqual([
      {
        index: 0,
        delta: { role: 'assistant', content: null, reasoning_content: 'Let me ', reasoning: 'Let me ' },
        finish_reason: null,
      },
      { index: 0, delta: { content: '9.8', reasoning_content: null }, finish_reason: null },
      { index: 0, delta: { content: '' }, finish_reason: 'length' },
    ]);
    expect(chunks.at(-1)?.usage).toEqual({ ...NO_USAGE, promptTokens: 17, completionTokens: 9 });
  });

  it('hands on usage of every chunk that has one, and ends tool calls as such whatever the upstream says', async () => {
    const chunks = await readStream(streamed(sample('tool-stream.sse')));
    expect(chunks.map(({ usage }) => usage?.completionTokens)).toEqual([1, 12, 14]);
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason)).toEqual([null, null, 'tool_calls']);
    expect(chunks[1]?.choices[0]?.delta.tool_calls).toEqual([
      {
        index: 0,
        function: { arguments: '{"city":"Ulm"}' },
        extra_content: { google: { thought_signature: 'c2ln' } },
      },
    ]);
  });

  it.each([undefined, 'tool', null])(
    "makes a call of a function 'function', whatever type the upstream states: %s",
    async (type) => {
      const call = { index: 0, id: 'call_1', type, function: { name: 'f', arguments: '{}' } };
      const chunks = await readStream(
        streamed(chunksOf({ choices: [{ index: 0, delta: { tool_calls: [call] } }] }, END)),
      );
      expect(chunks[0]?.choices[0]?.delta.tool_calls).toEqual([{ ...call, type: 'function' }]);
    },
  );

  it('reads the same from bytes that come one by one', async () => {
    const text = sample('tool-stream.sse');
    expect(await readStream(streamed(...text))).toEqual(await readStream(streamed(text)));
  });

  it('reads choices that come in turns, each with its role and end', async () => {
    const chunk = (index: number, content: string | null, finish_reason: string | null = null) => ({
      choices: [{ index, delta: content === null ? {} : { content }, finish_reason }],
    });
    const text = chunksOf(
      chunk(0, 'a'),
      chunk(1, 'b'),
      chunk(0, null, 'stop'),
      chunk(1, 'c'),
      chunk(1, null, 'length'),
    );
    const choices = (await readStream(streamed(text))).flatMap((read) => read.choices);
    expect(choices).toEqual([
      { index: 0, delta: { role: 'assistant', content: 'a' }, finish_reason: null },
      { index: 1, delta: { role: 'assistant', content: 'b' }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 1, delta: { content: 'c' }, finish_reason: null },
      { index: 1, delta: {}, finish_reason: 'length' },
    ]);
  });

  it('reads nothing after [DONE]', async () => {
    expect(await readStream(streamed(`${chunksOf(END)}data: {broken\n\n`))).toHaveLength(1);
  });

  it.each([
    ['an empty body', ''],
    ['[DONE] alone', chunksOf()],
    ['usage alone', chunksOf({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } })],
    ['a choice without an end', chunksOf({ choices: [{ index: 0, delta: { content: 'a' } }] })],
    ['one of two choices without an end', chunksOf({ choices: [{ index: 1, delta: { content: 'a' } }] }, END)],
    ['a malformed chunk', 'data: {"choices":[{\n\n'],
    ['a chunk that is no object', 'data: "hello"\n\n'],
    ['choices that are no list', chunksOf({ choices: {} })],
    ['a choice that is no object', chunksOf({ choices: ['a'] })],
    ['content that is no text', chunksOf({ choices: [{ delta: { content: 7 } }] })],
    ['an error', chunksOf({ error: { message: 'quota' } })],
    ['an error after the end of every choice', chunksOf(END, { error: { message: 'quota' } })],
    ['an error with a choice', chunksOf({ ...END, error: 'quota' })],
    ['an event named error', 'event: error\ndata: {"message":"quota"}\n\n'],
    [
      'an event named error after the end of every choice',
      `data: ${JSON.stringify(END)}\n\nevent: error\ndata: {"message":"quota"}\n\n`,
    ],
    ['too many choices', chunksOf({ choices: Array.from({ length: 129 }, (_, index) => ({ index, delta: {} })) })],
  ])('refuses %s as a bad response', async (_name, text) => {
    await expect(readStream(streamed(text))).rejects.toMatchObject({
      name: 'UpstreamError',
      errorType: 'bad_response',
      retryable: true,
    });
  });

  it('hands on what came before a malformed chunk', async () => {
    const read: unknown[] = [];
    const reading = (async () => {
      const response = streamed('data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\ndata: {\n\n');
      for await (const chunk of openAiAdapter.parseStream(response)) read.push(chunk.choices[0]?.delta.content);
    })();
    await expect(reading).rejects.toMatchObject({ errorType: 'bad_response' });
    expect(read).toEqual(['a']);
  });

  it.each([
    ['leaves at a chunk', chunksOf(END), true],
    ['gets a malformed chunk', `data: {\n\n${chunksOf(END)}`, false],
    ['reads to the end', chunksOf(END), false],
  ])('lets go of the exchange when the reader %s, and tells no more', async (_name, text, leaves) => {
    let closed = 0;
    const chunks = (async function* () {
      try {
        yield Buffer.from(text);
        yield Buffer.from(': more\n\n');
      } finally {
        closed += 1;
      }
    })();
    const stream = openAiAdapter.parseStream({ ...streamed(), chunks });
    const reading = (async () => {
      for await (const _ of stream) if (leaves) break;
    })();
    await reading.catch(() => undefined);
    expect(closed).toBe(1);
    expect(await stream[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });
});
