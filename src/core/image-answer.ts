import type { Usage } from '../domain/usage.ts';
import type { CallMetadata, ImageAnswer, ImageUsage } from '../generated/types.ts';
import type { UpstreamImages } from '../providers/adapter.ts';
import { type Cost, costFields } from './meter.ts';

/** The answer of an image call. Fields of the upstream's that nobody here knows are kept. */
export function imageAnswer(
  created: number,
  { images, fields }: UpstreamImages,
  usage: ImageUsage,
  metadata: CallMetadata,
): ImageAnswer {
  return {
    ...fields,
    created,
    data: images.map(({ base64, url, revisedPrompt }) => ({
      ...(base64 === undefined ? {} : { b64_json: base64 }),
      ...(url === undefined ? {} : { url }),
      ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt }),
    })),
    usage,
    metadata,
  };
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
