import { normaliseUsage, type Usage } from '../../domain/usage.ts';
import { count, isRecord, record } from '../wire/json.ts';

/**
 * Usage of OpenAI's form, with what its imitators add. `prompt_tokens` includes cached ones everywhere. Undefined when there is
 * none, the two main numbers are not counts, or both are zero.
 */
export function openAiUsage(reported: unknown): Usage | undefined {
  if (!isRecord(reported)) return undefined;
  const promptTokens = count(reported.prompt_tokens);
  const written = count(reported.completion_tokens);
  if (promptTokens === undefined || written === undefined || promptTokens + written === 0) return undefined;
  const prompt = record(reported.prompt_tokens_details);
  const completion = record(reported.completion_tokens_details);
  const writes = record(prompt.cache_creation);
  const write1h = count(writes.ephemeral_1h_input_tokens) ?? 0;
  const allWrites = count(prompt.cache_write_tokens) ?? count(prompt.cache_creation_tokens) ?? 0;
  const reasoningTokens = count(completion.reasoning_tokens) ?? count(reported.reasoning_tokens) ?? 0;
  // xAI counts reasoning apart from what was written; the total shows where a provider does so.
  const isBeside = count(reported.total_tokens) === promptTokens + written + reasoningTokens;
  return normaliseUsage({
    promptTokens,
    completionTokens: isBeside ? written + reasoningTokens : written,
    reasoningTokens,
    cachedTokens: count(prompt.cached_tokens) ?? cachedBeside(reported),
    cacheWrite5mTokens: count(writes.ephemeral_5m_input_tokens) ?? Math.max(0, allWrites - write1h),
    cacheWrite1hTokens: write1h,
    promptAudioTokens: count(prompt.audio_tokens) ?? 0,
    promptImageTokens: count(prompt.image_tokens) ?? 0,
    promptVideoTokens: count(prompt.video_tokens) ?? 0,
    completionAudioTokens: count(completion.audio_tokens) ?? 0,
    completionImageTokens: count(completion.image_tokens) ?? 0,
    webSearches: count(record(reported.server_tool_use).web_search_requests) ?? 0,
  });
}

/** Cached tokens outside of the details: Moonshot and Together, DeepSeek, Mistral. */
const cachedBeside = (reported: Readonly<Record<string, unknown>>): number =>
  count(reported.cached_tokens) ?? count(reported.prompt_cache_hit_tokens) ?? count(reported.num_cached_tokens) ?? 0;

/** The usage of an answer or of a chunk, where it stands: Groq's own object and Moonshot's choices have it too. */
export function reportedUsage(answer: Readonly<Record<string, unknown>>): Usage | undefined {
  const { usage, x_groq: groq, choices } = answer;
  const [choice] = Array.isArray(choices) ? choices : [];
  return openAiUsage(usage) ?? openAiUsage(record(groq).usage) ?? openAiUsage(record(choice).usage);
}
