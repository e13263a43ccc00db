import type { GenerateImage } from '../../core/generate-image.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateImageRequest } from '../../generated/validators.js';
import { callContext, principalOf } from '../call-context.ts';
import { inForm, type MetadataForm, metadataForm } from '../metadata-form.ts';
import { sendJson } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ImagesDeps {
  generateImage: GenerateImage;
  metadataForm: MetadataForm;
}

/** `POST /v1/images/generations`: OpenAI's request and answer. */
export function imagesRoute(deps: ImagesDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkOpenAiShape(validateImageRequest, ctx.state.body);
    const form = metadataForm(ctx, deps.metadataForm);
    sendJson(ctx, inForm(await deps.generateImage(principalOf(ctx), callContext(ctx), request), form));
  };
}
