import fc from 'fast-check';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { MAX_PIECE_LENGTH, pieces } from '../../../src/providers/tokens/token-pieces.ts';

const tokensOf = (text: string): number => [...pieces(text)].reduce((sum, piece) => sum + countTokens(piece), 0);

describe('the pieces of a text', () => {
  it('are the text again, none of them empty or longer than 512 characters', () => {
    const text = fc.string({ unit: 'binary', maxLength: 2000, size: 'max' });
    fc.assert(
      fc.property(text, (whole) => {
        const list = [...pieces(whole)];
        expect(list.join('')).toBe(whole);
        expect(list.every(({ length }) => length > 0 && length <= MAX_PIECE_LENGTH)).toBe(true);
      }),
    );
  });

  it('never part the two halves of a character', () => {
    const faces = `x${'😀'.repeat(1000)}`;

    expect([...pieces(faces)].every((piece) => piece.isWellFormed())).toBe(true);
    expect([...pieces(faces)].map(({ length }) => length)).toEqual([511, 512, 512, 466]);
  });

  it('end before a space that a word follows, where the tokenizer cuts as well: no count changes', () => {
    const word = fc.oneof(
      fc.stringMatching(/^[a-zA-Z0-9]{1,12}$/),
      fc.constantFrom("don't", '--', '…', 'čaj', '好的', '\n', '\n\n', '\t', '  ', '12345', '/*', '😀'),
    );
    fc.assert(
      fc.property(fc.array(word, { minLength: 100, maxLength: 400 }), (words) => {
        const text = words.join(' ');
        expect(tokensOf(text)).toBe(countTokens(text));
      }),
    );
  });

  it('are cut at 512 characters where there is no such space', () => {
    expect([...pieces('a'.repeat(1030))].map(({ length }) => length)).toEqual([512, 512, 6]);
    expect([...pieces(' '.repeat(600))].map(({ length }) => length)).toEqual([512, 88]);
    expect([...pieces(`${'a'.repeat(510)} b${'c'.repeat(20)}`)].map(({ length }) => length)).toEqual([510, 22]);
  });
});
