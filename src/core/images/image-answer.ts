import type { Usage } from '../../domain/usage.ts';
import type { CallMetadata, ImageAnswer, ImageEvent, ImageUsage } from '../../generated/types.ts';
import type { LongTexts } from '../../net/long-texts.ts';
import type { PartialImage } from '../../providers/wire/adapter.ts';
import { type ProviderJson, WrittenAnswer } from '../call/written-answer.ts';
import { type Cost, costFields } from '../price/meter.ts';

/** Its `data`, and fields that nobody here knows, are the provider's. */
export type WrittenImages = WrittenAnswer<Omit<ImageAnswer, 'data'>>;

/** The same of an event: its image. */
export type WrittenEvent = WrittenAnswer<ImageEvent>;

/** What is known when the call is settled. */
export interface ImageEnd {
  readonly usage: ImageUsage;
  readonly metadata: CallMetadata;
}

/** The answer of an image call. */
export const imageAnswer = (created: number, upstream: ProviderJson, end: ImageEnd): WrittenImages =>
  new WrittenAnswer({ created, ...end }, upstream);

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
export function partialEvent(
  created: number,
  { base64, position, fields }: PartialImage,
  longTexts: LongTexts,
): WrittenEvent {
  const event: ImageEvent = {
    ...fields,
    type: 'image_generation.partial_image',
    created_at: created,
    b64_json: base64,
    partial_image_index: position,
  };
  return new WrittenAnswer(event, undefined, longTexts);
}

/** The events of a whole answer: one for each image, the last with the usage of all. */
export const completedEvents = (
  created: number,
  images: readonly ProviderJson[],
  end: ImageEnd,
  longTexts: LongTexts,
): WrittenEvent[] =>
  images.map((image, position) => {
    const event = { type: 'image_generation.completed', created_at: created } as const;
    return new WrittenAnswer(position === images.length - 1 ? { ...event, ...end } : event, image, longTexts);
  });
