import { describe, expect, it } from 'vitest';
import type { ChunkToolCall } from '../../../src/generated/types.ts';
import { chunksOf, readStream, sample, streamed } from '../answers.ts';

async function fragments(text: string): Promise<ChunkToolCall[]> {
  const chunks = await readStream(streamed(text));
  expect(chunks.at(-1)?.choices.at(-1)?.finish_reason).toBe('tool_calls');
  return chunks.flatMap(({ choices }) => choices.flatMap(({ delta }) => delta.tool_calls ?? []));
}

/** The fragments that come of these, one chunk each. */
const read = (...calls: object[]): Promise<ChunkToolCall[]> =>
  fragments(
    chunksOf(...calls.map((call) => ({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })), {
      choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
    }),
  );

const first = (index: number, id: string, name: string, args: string): ChunkToolCall => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: args },
});
const more = (index: number, args: string): ChunkToolCall => ({ index, function: { arguments: args } });

describe('fragments of tool calls', () => {
  it('pass as they are in the form of OpenAI', async () => {
    const calls = [first(0, 'a', 'f', ''), more(0, '{'), first(1, 'b', 'f', '{}'), more(0, '}')];
    expect(await read(...structuredClone(calls))).toEqual(calls);
  });

  it('with one index for all are kept apart by their ids', async () => {
    expect(await fragments(sample('compatible/index-zero.sse'))).toEqual([
      first(0, 'a', 'f', '{"x":1}'),
      first(1, 'b', 'f', '{"x":'),
      more(1, '2}'),
    ]);
  });

  it('without an index are numbered, and keep what the provider needs back', async () => {
    expect(await fragments(sample('compatible/no-index.sse'))).toEqual([
      { ...first(0, 'function-call-1', 'f', '{}'), extra_content: { google: { thought_signature: 'c2ln' } } },
      first(1, 'function-call-2', 'g', '{}'),
    ]);
  });

  it('that repeat id and name have them in the first only', async () => {
    expect(await fragments(sample('compatible/repeated.sse'))).toEqual([
      first(0, 'a', 'f', '{'),
      first(1, 'b', 'g', '{'),
      more(1, '}'),
      more(0, '}'),
    ]);
  });

  it('that come back to an earlier id under one index go on with that call', async () => {
    const calls = [first(0, 'a', 'f', '{'), first(0, 'b', 'f', '{'), first(0, 'a', 'f', '}')];
    expect(await read(...calls)).toEqual([first(0, 'a', 'f', '{'), first(1, 'b', 'f', '{'), more(0, '}')]);
  });

  it('with an id that changes, but no name, go on with their call', async () => {
    const calls = [first(0, 'a', 'f', '{'), { index: 0, id: 'x', function: { name: null, arguments: '}' } }];
    expect(await read(...calls)).toEqual([first(0, 'a', 'f', '{'), more(0, '}')]);
  });

  it('with the same id under two indices are two calls', async () => {
    const calls = [first(0, 'f', 'f', '{}'), first(1, 'f', 'f', '{}')];
    expect(await read(...structuredClone(calls))).toEqual(calls);
  });

  it('with neither index nor id begin a call where they name a function', async () => {
    const named = (name: string) => ({ function: { name, arguments: '{' } });
    expect(await read(named('f'), { function: { arguments: '}' } }, named('f'))).toEqual([
      { index: 0, type: 'function', function: { name: 'f', arguments: '{' } },
      more(0, '}'),
      { index: 1, type: 'function', function: { name: 'f', arguments: '{' } },
    ]);
  });

  it('whose index begins elsewhere than at 0 are numbered from 0', async () => {
    expect(await read(first(1, 'a', 'f', '{'), more(1, '}'))).toEqual([first(0, 'a', 'f', '{'), more(0, '}')]);
  });

  it('with empty ids are those of the call under their index', async () => {
    const calls = [first(0, 'a', 'f', '{'), first(0, '', '', '}')];
    expect(await read(...calls)).toEqual([first(0, 'a', 'f', '{'), more(0, '}')]);
  });

  it('with arguments as an object have them as text', async () => {
    const [call] = await read({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: { x: 1 } } });
    expect(call).toEqual(first(0, 'a', 'f', '{"x":1}'));
  });

  it('are refused when they begin more calls than a model makes', async () => {
    const calls = Array.from({ length: 1025 }, (_, n) => first(n, `id${n}`, 'f', ''));
    const text = chunksOf({ choices: [{ index: 0, delta: { tool_calls: calls } }] });
    await expect(readStream(streamed(text))).rejects.toMatchObject({ errorType: 'bad_response' });
  });

  it('are refused when all choices together begin more than that', async () => {
    const callsOf = (choice: number) => Array.from({ length: 600 }, (_, n) => first(n, `id${choice}.${n}`, 'f', ''));
    const text = chunksOf({ choices: [0, 1].map((index) => ({ index, delta: { tool_calls: callsOf(index) } })) });
    await expect(readStream(streamed(text))).rejects.toMatchObject({ errorType: 'bad_response' });
  });

  it('are kept apart by ids of any length', async () => {
    const long = 'x'.repeat(5000);
    const calls = [first(0, `${long}a`, 'f', '{'), first(0, `${long}b`, 'f', '{'), first(0, `${long}a`, 'f', '}')];
    expect(await read(...structuredClone(calls))).toEqual([
      first(0, `${long}a`, 'f', '{'),
      first(1, `${long}b`, 'f', '{'),
      more(0, '}'),
    ]);
  });

  it.each(['length', 'content_filter'])('leave the end %s as it is', async (finish_reason) => {
    const text = chunksOf({ choices: [{ index: 0, delta: { tool_calls: [first(0, 'a', 'f', '{')] }, finish_reason }] });
    expect((await readStream(streamed(text)))[0]?.choices[0]?.finish_reason).toBe(finish_reason);
  });
});
