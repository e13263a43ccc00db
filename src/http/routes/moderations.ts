import type { Moderate } from '../../core/moderate.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateModerationRequest } from '../../generated/validators.js';
import { callContext, principalOf } from '../call-context.ts';
import { inForm, type MetadataForm, metadataForm } from '../metadata-form.ts';
import { sendJson } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ModerationsDeps {
  moderate: Moderate;
  metadataForm: MetadataForm;
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute(deps: ModerationsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkOpenAiShape(validateModerationRequest, ctx.state.body);
    const form = metadataForm(ctx, deps.metadataForm);
    sendJson(ctx, inForm(await deps.moderate(principalOf(ctx), callContext(ctx), request), form));
  };
}
