import { type ModerateDeps, moderate } from '../../core/moderations/moderate.ts';
import { validateModerationRequest } from '../../generated/validators.js';
import { type MetadataForm, metadataForm, writtenInForm } from '../answer/metadata-form.ts';
import { sendJsonText } from '../answer/send-json.ts';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../middleware/json-body.ts';
import type { AppMiddleware } from '../state.ts';

export interface ModerationsDeps extends ModerateDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute(deps: ModerationsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validateModerationRequest, deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const answer = await moderate(deps, principalOf(ctx), callContext(ctx), request);
    sendJsonText(ctx, writtenInForm(answer, form));
  };
}
