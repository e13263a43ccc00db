import { describe, expect, it } from 'vitest';
import { NO_USAGE, type Usage } from '../../../src/domain/usage.ts';
import { openAiAdapter } from '../../../src/providers/openai/openai.ts';
import type { UpstreamChunk } from '../../../src/providers/wire/adapter.ts';
import { gathered, readStream, sample, streamed } from '../answers.ts';

const answer = (name: string) => openAiAdapter.parseResponse(gathered(sample(name)));
const stream = (name: string) => readStream(streamed(sample(name)));

/** What a caller's client makes of the stream of one choice. */
function told(chunks: readonly UpstreamChunk[]) {
  const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
  const text = (of: (delta: (typeof deltas)[number]) => string | null | undefined) =>
    deltas.map((delta) => of(delta) ?? '').join('');
  return {
    content: text(({ content }) => content),
    reasoning: text(({ reasoning }) => reasoning),
    firstRole: deltas[0]?.role,
    ends: chunks.flatMap(({ choices }) => choices.flatMap(({ finish_reason: end }) => end ?? [])),
    usage: chunks.findLast(({ usage }) => usage !== undefined)?.usage,
  };
}

const usage = (counts: Partial<Usage>): Usage => ({ ...NO_USAGE, ...counts });

describe('the wire of', () => {
  it('OpenAI: choices in turns, obfuscation kept, audio tokens counted', async () => {
    const chunks = await stream('openai/interleaved.sse');
    expect(chunks.map(({ fields }) => fields)).toEqual(
      ['a', 'bc', 'd', 'e', 'f', 'g', 'h', 'i'].map((obfuscation) => ({ obfuscation })),
    );
    expect(chunks.flatMap(({ choices }) => choices)).toEqual([
      { index: 0, delta: { role: 'assistant', content: '', refusal: null }, finish_reason: null },
      { index: 1, delta: { role: 'assistant', content: '', refusal: null }, finish_reason: null },
      {
        index: 1,
        delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }] },
        finish_reason: null,
      },
      { index: 0, delta: { content: 'x' }, finish_reason: null },
      { index: 1, delta: { tool_calls: [{ index: 0, function: { arguments: '{}' } }] }, finish_reason: null },
      { index: 0, delta: {}, finish_reason: 'stop' },
      { index: 1, delta: {}, finish_reason: 'tool_calls' },
    ]);
    expect(chunks.at(-1)?.usage).toEqual(
      usage({ promptTokens: 30, completionTokens: 12, promptAudioTokens: 10, completionAudioTokens: 5 }),
    );
  });

  it('Mistral: thoughts as parts of the content, usage without details', async () => {
    expect(answer('mistral/thinking.json')).toEqual({
      model: 'magistral-medium-2509',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'Four children.',
            reasoning: 'John is one of four.',
            prefix: false,
          },
          finish_reason: 'stop',
        },
      ],
      usage: usage({ promptTokens: 21, completionTokens: 34 }),
      fields: {},
    });
    expect(told(await stream('mistral/stream.sse'))).toEqual({
      content: 'Four',
      reasoning: 'Hm.',
      firstRole: 'assistant',
      ends: ['length'],
      usage: usage({ promptTokens: 21, completionTokens: 9 }),
    });
  });

  it('Mistral: tool calls without a type, with arguments as an object', () => {
    const { choices, usage: counted } = answer('mistral/tools.json');
    expect(choices[0]?.message.tool_calls).toEqual([
      { id: 'D681PevKs', type: 'function', index: 0, function: { name: 'weather', arguments: '{"city":"Ulm"}' } },
    ]);
    expect(counted).toEqual(usage({ promptTokens: 90, completionTokens: 12, cachedTokens: 64 }));
  });

  it('Groq: usage in `x_groq` of the last chunk', async () => {
    const chunks = await stream('groq/stream.sse');
    expect(told(chunks)).toEqual({
      content: 'Hi',
      reasoning: 'We greet.',
      firstRole: 'assistant',
      ends: ['stop'],
      usage: usage({ promptTokens: 72, completionTokens: 18, reasoningTokens: 7 }),
    });
  });

  it('DeepSeek: keep-alive comments, `reasoning_content`, cache hits outside the details', async () => {
    expect(told(await stream('deepseek/stream.sse'))).toEqual({
      content: '9.8',
      reasoning: 'Nine.',
      firstRole: 'assistant',
      ends: ['stop'],
      usage: usage({ promptTokens: 100, completionTokens: 9, reasoningTokens: 5, cachedTokens: 64 }),
    });
  });

  it('xAI: reasoning counted apart from what was written', () => {
    expect(answer('xai/completion.json')).toMatchObject({
      choices: [{ message: { content: '101 * 3 = 303', reasoning: 'Multiply.' } }],
      usage: usage({ promptTokens: 32, completionTokens: 103, reasoningTokens: 94, cachedTokens: 6 }),
    });
  });

  it('Together: an end of its own, cached tokens outside the details', () => {
    const { choices, usage: counted } = answer('together/completion.json');
    expect(choices).toEqual([
      {
        index: 0,
        seed: 1,
        logprobs: null,
        message: { role: 'assistant', content: 'Paris.', tool_calls: [], reasoning: 'France.' },
        finish_reason: 'stop',
      },
    ]);
    expect(counted).toEqual(usage({ promptTokens: 15, completionTokens: 8, cachedTokens: 10 }));
  });

  it('OpenRouter: comments, signed thoughts, images, cache writes and web searches; its cost is not ours', async () => {
    const chunks = await stream('openrouter/stream.sse');
    expect(told(chunks)).toEqual({
      content: 'Here.',
      reasoning: 'Let me',
      firstRole: 'assistant',
      ends: ['stop'],
      usage: usage({
        promptTokens: 2000,
        completionTokens: 120,
        reasoningTokens: 40,
        cachedTokens: 1000,
        cacheWrite5mTokens: 500,
        webSearches: 2,
      }),
    });
    const deltas = chunks.flatMap(({ choices }) => choices.map(({ delta }) => delta));
    expect(deltas.flatMap(({ reasoning_details: details }) => details ?? [])).toEqual([
      { type: 'reasoning.text', text: 'Let me', format: 'anthropic-claude-v1', index: 0 },
      { type: 'reasoning.text', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 },
    ]);
    expect(deltas.map(({ images }) => images)).toEqual([
      undefined,
      undefined,
      [{ type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' }, index: 0 }],
      undefined,
      undefined,
    ]);
    expect(JSON.stringify(chunks)).not.toContain('cost');
  });

  it('Cerebras: choices without an end until the last, predictions within what was written', async () => {
    const chunks = await stream('cerebras/stream.sse');
    expect(told(chunks)).toEqual({
      content: 'Hello',
      reasoning: 'Greet.',
      firstRole: 'assistant',
      ends: ['stop'],
      usage: usage({ promptTokens: 12, completionTokens: 10, cachedTokens: 4 }),
    });
    expect(chunks.at(-1)?.fields).toHaveProperty('time_info');
  });

  it('Moonshot: usage inside a choice, from where it is taken out', async () => {
    const chunks = await stream('moonshotai/stream.sse');
    expect(told(chunks).usage).toEqual(usage({ promptTokens: 90, completionTokens: 3, cachedTokens: 80 }));
    expect(chunks.at(-1)?.choices).toEqual([{ index: 0, delta: {}, finish_reason: 'stop' }]);
  });

  it('servers that end lines as Windows does, split an event over lines, and send comments and other fields', async () => {
    const text = [
      'data: {"model":"m",',
      'data: "choices":[{"index":0,"delta":{"content":"a"}}]}',
      '',
      ': a comment',
      'id: 7',
      'retry: 10',
      'data:{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
      '',
      'data: [DONE]',
      '',
      '',
    ].join('\r\n');
    const wanted = { content: 'a', reasoning: '', firstRole: 'assistant', ends: ['stop'], usage: undefined };
    expect(told(await readStream(streamed(text)))).toEqual(wanted);
    expect(told(await readStream(streamed(...text)))).toEqual(wanted);
  });
});
