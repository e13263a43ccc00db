import type { GenerateImage } from '../../core/generate-image.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateImageRequest } from '../../generated/validators.js';
import { callContext, principalOf } from '../call-context.ts';
import { sendJsonText } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ImagesDeps {
  generateImage: GenerateImage;
}

/** `POST /v1/images/generations`: OpenAI's request and answer. */
export function imagesRoute({ generateImage }: ImagesDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkOpenAiShape(validateImageRequest, ctx.state.body);
    sendJsonText(ctx, await generateImage(principalOf(ctx), callContext(ctx), request));
  };
}
