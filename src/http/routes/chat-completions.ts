import { type CompleteChatDeps, completeChat } from '../../core/chat/complete-chat.ts';
import { lacksModel, withDefaultModel } from '../../core/models/resolve.ts';
import { validateChatRequest } from '../../generated/validators.js';
import { type MetadataForm, metadataForm, writtenInForm } from '../answer/metadata-form.ts';
import { type SendEventsDeps, sendEvents } from '../answer/send-events.ts';
import { sendJsonText } from '../answer/send-json.ts';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../middleware/json-body.ts';
import type { AppMiddleware } from '../state.ts';

export interface ChatCompletionsDeps extends SendEventsDeps, CompleteChatDeps {
  metadataForm: MetadataForm;
}

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute(deps: ChatCompletionsDeps): AppMiddleware {
  return async (ctx) => {
    if (lacksModel(ctx.state.body)) {
      ctx.state.body = await withDefaultModel(deps.findReach, principalOf(ctx), ctx.state.body);
    }
    const request = checkedBody(ctx, validateChatRequest, deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await completeChat(deps, principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') sendJsonText(ctx, writtenInForm(outcome.completion, form));
    else await sendEvents(deps, ctx, outcome.chunks, form, { end: '[DONE]' });
  };
}
