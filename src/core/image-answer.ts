import type { Usage } from '../domain/usage.ts';
import type { CallMetadata, ImageAnswer, ImageEvent, ImageUsage } from '../generated/types.ts';
import type { PartialImage, UpstreamImages } from '../providers/adapter.ts';
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

/** What a stream shows of an image that is being made. */
export const partialEvent = (created: number, { base64, position, fields }: PartialImage): ImageEvent => ({
  ...fields,
  type: 'image_generation.partial_image',
  created_at: created,
  b64_json: base64,
  partial_image_index: position,
});

/** The events of a whole answer: one for each image, the last with the usage of all. */
export function completedEvents({ created, data, usage, metadata, ...fields }: ImageAnswer): ImageEvent[] {
  return data.map((image, position) => ({
    ...fields,
    type: 'image_generation.completed',
    created_at: created,
    ...image,
    ...(position === data.length - 1 ? { usage, metadata } : {}),
  }));
}
