import type { Moderate } from '../../core/moderate.ts';
import { validateModerationRequest } from '../../generated/validators.js';
import type { Telemetry } from '../../telemetry.ts';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../checked-body.ts';
import { sendJson } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ModerationsDeps {
  moderate: Moderate;
  telemetry: Telemetry;
}

/** `POST /v1/moderations`: OpenAI's request and answer. */
export function moderationsRoute({ moderate, telemetry }: ModerationsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validateModerationRequest, telemetry);
    sendJson(ctx, await moderate(principalOf(ctx), callContext(ctx), request));
  };
}
