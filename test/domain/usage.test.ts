import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { guessTokens, NO_USAGE, normaliseUsage } from '../../src/domain/usage.ts';

describe('normaliseUsage', () => {
  it('fills what is not reported with nothing', () => {
    expect(normaliseUsage({ promptTokens: 3, completionTokens: 4 })).toEqual({
      ...NO_USAGE,
      promptTokens: 3,
      completionTokens: 4,
    });
  });

  it('lets cached reads and writes claim no more than the prompt, in that order', () => {
    const reported = { promptTokens: 100, cachedTokens: 60, cacheWrite1hTokens: 30, cacheWrite5mTokens: 30 };
    expect(normaliseUsage(reported)).toEqual({ ...NO_USAGE, ...reported, cacheWrite5mTokens: 10 });
  });

  it('keeps sums within what can be stored', () => {
    const largest = Number.MAX_SAFE_INTEGER;
    const sum = 3000 * largest;

    expect(
      normaliseUsage({ promptTokens: sum, cachedTokens: sum, completionTokens: sum, reasoningTokens: sum }),
    ).toEqual({
      ...NO_USAGE,
      promptTokens: largest,
      cachedTokens: largest,
      completionTokens: largest,
      reasoningTokens: largest,
    });
  });

  it('never lets a part exceed its whole', () => {
    const count = fc.nat({ max: 1000 });
    const counts = fc.record({
      promptTokens: count,
      completionTokens: count,
      reasoningTokens: count,
      cachedTokens: count,
      cacheWrite5mTokens: count,
      cacheWrite1hTokens: count,
      promptAudioTokens: count,
      promptImageTokens: count,
      promptVideoTokens: count,
      completionAudioTokens: count,
      completionImageTokens: count,
    });
    fc.assert(
      fc.property(counts, (reported) => {
        const usage = normaliseUsage(reported);
        expect(usage.cachedTokens + usage.cacheWrite1hTokens + usage.cacheWrite5mTokens).toBeLessThanOrEqual(
          usage.promptTokens,
        );
        for (const part of ['promptAudioTokens', 'promptImageTokens', 'promptVideoTokens'] as const) {
          expect(usage[part]).toBeLessThanOrEqual(usage.promptTokens);
        }
        for (const part of ['reasoningTokens', 'completionAudioTokens', 'completionImageTokens'] as const) {
          expect(usage[part]).toBeLessThanOrEqual(usage.completionTokens);
        }
        expect([usage.promptTokens, usage.completionTokens]).toEqual([
          reported.promptTokens,
          reported.completionTokens,
        ]);
      }),
    );
  });
});

describe('a guess at the tokens of a text', () => {
  it('takes four bytes for a token and rounds up', () => {
    expect([0, 1, 4, 5, 9].map(guessTokens)).toEqual([0, 1, 1, 2, 3]);
  });
});
