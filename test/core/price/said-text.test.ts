import { describe, expect, it } from 'vitest';
import { SaidText } from '../../../src/core/provider-answer.ts';

const KEPT = 64 * 1024;

describe('what is kept of an answer for an estimate', () => {
  it('is what each choice said, pieces put together: thoughts, refusals and calls of tools too', () => {
    const said = new SaidText();
    said.add(1, { content: 'Hel', reasoning: null });
    said.add(0, { reasoning: 'Hm. ' });
    said.add(0, { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'weather', arguments: '{"ci' } }] });
    said.add(0, { tool_calls: [{ index: 0, function: { arguments: 'ty":1}' } }] });
    said.add(1, { content: 'lo' });
    said.add(2, { refusal: 'No.' });

    expect(said.toCount()).toEqual({ texts: ['Hello', 'Hm. weather{"city":1}', 'No.'], omittedBytes: 0 });
  });

  it('is the call of a function in its old form too', () => {
    const said = new SaidText();
    const first = { content: null, function_call: { name: 'weather', arguments: '{"ci' } };
    const next = { content: null, function_call: { arguments: 'ty":1}' } };
    for (const piece of [first, next]) said.add(0, piece);

    expect(said.toCount()).toEqual({ texts: ['weather{"city":1}'], omittedBytes: 0 });
  });

  it('is at most 64 KiB of all choices; of the rest only the size is known', () => {
    const said = new SaidText();
    said.add(0, { content: 'a'.repeat(KEPT - 3) });
    said.add(1, { content: 'b😀b' });
    said.add(0, { content: 'é' });
    said.add(2, { content: 'c' });

    expect(said.toCount()).toEqual({ texts: ['a'.repeat(KEPT - 3), 'b'], omittedBytes: 5 + 2 + 1 });
  });

  it('is nothing again once it was cleared', () => {
    const said = new SaidText();
    said.add(0, { content: 'a'.repeat(KEPT + 1) });

    said.clear();

    expect(said.toCount()).toEqual({ texts: [], omittedBytes: 0 });
    said.add(0, { content: 'b'.repeat(KEPT) });
    expect(said.toCount()).toEqual({ texts: ['b'.repeat(KEPT)], omittedBytes: 0 });
  });
});
