import { type GenerateImageDeps, generateImage } from '../../core/images/generate-image.ts';
import { validateImageRequest } from '../../generated/validators.js';
import { type MetadataForm, metadataForm, writtenInForm } from '../answer/metadata-form.ts';
import { type SendEventsDeps, sendEvents } from '../answer/send-events.ts';
import { sendJsonText } from '../answer/send-json.ts';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../middleware/json-body.ts';
import type { AppMiddleware } from '../state.ts';

export interface ImagesDeps extends SendEventsDeps, GenerateImageDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/images/generations`: OpenAI's request and answer, JSON or server-sent events. */
export function imagesRoute(deps: ImagesDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validateImageRequest, deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await generateImage(deps, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'answer') sendJsonText(ctx, writtenInForm(outcome.answer, form));
    else await sendEvents(deps, ctx, outcome.events, form, { nameOf: ({ type }) => type });
  };
}
