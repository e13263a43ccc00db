import type { Moderate } from '../../core/moderate.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateModerationRequest } from '../../generated/validators.js';
import { callContext, principalOf } from '../call-context.ts';
import { sendJsonText } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ModerationsDeps {
  moderate: Moderate;
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute({ moderate }: ModerationsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkOpenAiShape(validateModerationRequest, ctx.state.body);
    sendJsonText(ctx, await moderate(principalOf(ctx), callContext(ctx), request));
  };
}
