import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../../src/domain/usage.ts';
import { openAiUsage } from '../../../src/providers/openai/answer.ts';

describe('openAiUsage', () => {
  it('reads every count', () => {
    const reported = {
      prompt_tokens: 1000,
      completion_tokens: 500,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 100, audio_tokens: 20, image_tokens: 30, video_tokens: 40 },
      completion_tokens_details: { reasoning_tokens: 50, audio_tokens: 60, image_tokens: 70 },
    };
    expect(openAiUsage(reported)).toEqual({
      ...NO_USAGE,
      promptTokens: 1000,
      completionTokens: 500,
      cachedTokens: 100,
      promptAudioTokens: 20,
      promptImageTokens: 30,
      promptVideoTokens: 40,
      reasoningTokens: 50,
      completionAudioTokens: 60,
      completionImageTokens: 70,
    });
  });

  it('reads cache writes of five minutes and of an hour, or all as five minutes where they are not told apart', () => {
    const base = { prompt_tokens: 1000, completion_tokens: 0 };
    const split = { cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 } };
    const both = { cache_creation_tokens: 30, cache_creation: { ephemeral_1h_input_tokens: 20 } };
    const usage = { ...NO_USAGE, promptTokens: 1000, cacheWrite5mTokens: 10, cacheWrite1hTokens: 20 };
    expect(openAiUsage({ ...base, prompt_tokens_details: split })).toEqual(usage);
    expect(openAiUsage({ ...base, prompt_tokens_details: both })).toEqual(usage);
    expect(openAiUsage({ ...base, prompt_tokens_details: { cache_write_tokens: 30 } })).toEqual({
      ...NO_USAGE,
      promptTokens: 1000,
      cacheWrite5mTokens: 30,
    });
  });

  it.each([undefined, null, 'many', [], {}, { prompt_tokens: 1 }, { prompt_tokens: 1.5, completion_tokens: 1 }])(
    'reads %j as no usage',
    (reported) => expect(openAiUsage(reported)).toBeUndefined(),
  );

  it.each([-1, 0.5, '7', null, 2 ** 60])('reads the detail %j as not reported', (cached_tokens) => {
    const reported = { prompt_tokens: 9, completion_tokens: 1, prompt_tokens_details: { cached_tokens } };
    expect(openAiUsage(reported)).toEqual({ ...NO_USAGE, promptTokens: 9, completionTokens: 1 });
  });

  it('adds reasoning to what was written where the total shows that it is counted apart, and only there', () => {
    const reported = { prompt_tokens: 32, completion_tokens: 9, completion_tokens_details: { reasoning_tokens: 94 } };
    const usage = { ...NO_USAGE, promptTokens: 32 };
    expect(openAiUsage({ ...reported, total_tokens: 135 })).toEqual({
      ...usage,
      completionTokens: 103,
      reasoningTokens: 94,
    });
    expect(openAiUsage({ ...reported, total_tokens: 41 })).toEqual({
      ...usage,
      completionTokens: 9,
      reasoningTokens: 9,
    });
    expect(openAiUsage(reported)).toEqual({ ...usage, completionTokens: 9, reasoningTokens: 9 });
  });

  it.each(['cached_tokens', 'prompt_cache_hit_tokens', 'num_cached_tokens'])(
    'reads cached tokens of %s outside the details, which come first',
    (name) => {
      const reported = { prompt_tokens: 9, completion_tokens: 1, [name]: 5 };
      const usage = { ...NO_USAGE, promptTokens: 9, completionTokens: 1 };
      expect(openAiUsage(reported)).toEqual({ ...usage, cachedTokens: 5 });
      expect(openAiUsage({ ...reported, prompt_tokens_details: { cached_tokens: 2 } })).toEqual({
        ...usage,
        cachedTokens: 2,
      });
    },
  );

  it('reads zeros as no usage: a later chunk, or an estimate, knows better', () => {
    expect(openAiUsage({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 })).toBeUndefined();
  });
});
