import type { GenerateImage } from '../../core/generate-image.ts';
import { validateImageRequest } from '../../generated/validators.js';
import type { Telemetry } from '../../telemetry.ts';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../checked-body.ts';
import { sendJson } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ImagesDeps {
  generateImage: GenerateImage;
  telemetry: Telemetry;
}

/** `POST /v1/images/generations`: OpenAI's request and answer. */
export function imagesRoute({ generateImage, telemetry }: ImagesDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validateImageRequest, telemetry);
    sendJson(ctx, await generateImage(principalOf(ctx), callContext(ctx), request));
  };
}
