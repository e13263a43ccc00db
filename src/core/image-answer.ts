import type { Usage } from '../domain/usage.ts';
import type { CallMetadata, ImageAnswer, ImageUsage } from '../generated/types.ts';
import { type JsonText, type ProviderJson, withProviderJson } from './json-text.ts';
import { type Cost, costFields } from './meter.ts';

/** The answer of an image call. @param upstream its `data`, and fields that nobody here knows */
export function imageAnswer(
  created: number,
  upstream: ProviderJson,
  usage: ImageUsage,
  metadata: CallMetadata,
): JsonText {
  const ours: Omit<ImageAnswer, 'data'> = { created, usage, metadata };
  return withProviderJson(ours, upstream);
}

/** The answer's `usage`: by OpenAI's names for image calls and by those of chats, with its cost. */
export function imageUsage(usage: Usage, cost: Cost): ImageUsage {
  const { promptTokens, completionTokens, promptImageTokens } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { text_tokens: promptTokens - promptImageTokens, image_tokens: promptImageTokens },
    output_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    ...costFields(usage, cost),
  };
}
