import type { ChatRequest } from '../../generated/types.ts';
import { lastText, type SandboxAnswer } from './answer.ts';
import { imageSize } from './image-size.ts';
import { imageTokens } from './images.ts';
import { detailOf } from './models.ts';
import type { Painter } from './painter.ts';

/**
 * The answer of a model that draws, with a picture of the last message in each choice; any other model's as it is. Its size is
 * that of an image request that names none.
 */
export async function illustrated(
  said: SandboxAnswer,
  request: ChatRequest,
  painter: Painter,
  signal: AbortSignal,
): Promise<SandboxAnswer> {
  const detail = detailOf(request.model);
  const size = imageSize(undefined, undefined);
  if (detail === undefined || size === undefined) return said;
  const drawn = await painter.draw(lastText(request), said.choices.length, size, detail, signal);
  const tokens = drawn.length * imageTokens(size, detail);
  const { prompt_tokens, completion_tokens, total_tokens } = said.usage;
  return {
    choices: said.choices.map((choice) => ({ ...choice, images: drawn.slice(choice.index, choice.index + 1) })),
    usage: {
      prompt_tokens,
      completion_tokens: completion_tokens + tokens,
      total_tokens: total_tokens + tokens,
      completion_tokens_details: { image_tokens: tokens },
    },
  };
}
