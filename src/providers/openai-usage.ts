import { normaliseUsage, type Usage } from '../domain/usage.ts';
import { count, isRecord, record } from './json.ts';

/**
 * Usage of OpenAI's form, with the extensions of gateways that pass cache writes on. `prompt_tokens` includes cached ones there.
 * Undefined when there is none, or the two main numbers are not counts.
 */
export function openAiUsage(reported: unknown): Usage | undefined {
  if (!isRecord(reported)) return undefined;
  const promptTokens = count(reported.prompt_tokens);
  const completionTokens = count(reported.completion_tokens);
  if (promptTokens === undefined || completionTokens === undefined) return undefined;
  const prompt = record(reported.prompt_tokens_details);
  const completion = record(reported.completion_tokens_details);
  const writes = record(prompt.cache_creation);
  const write1h = count(writes.ephemeral_1h_input_tokens) ?? 0;
  const allWrites = count(prompt.cache_write_tokens) ?? count(prompt.cache_creation_tokens) ?? 0;
  return normaliseUsage({
    promptTokens,
    completionTokens,
    reasoningTokens: count(completion.reasoning_tokens) ?? count(reported.reasoning_tokens) ?? 0,
    cachedTokens: count(prompt.cached_tokens) ?? 0,
    cacheWrite5mTokens: count(writes.ephemeral_5m_input_tokens) ?? Math.max(0, allWrites - write1h),
    cacheWrite1hTokens: write1h,
    promptAudioTokens: count(prompt.audio_tokens) ?? 0,
    promptImageTokens: count(prompt.image_tokens) ?? 0,
    promptVideoTokens: count(prompt.video_tokens) ?? 0,
    completionAudioTokens: count(completion.audio_tokens) ?? 0,
    completionImageTokens: count(completion.image_tokens) ?? 0,
  });
}
