import type { CompleteChat } from '../../core/complete-chat.ts';
import { validateChatRequest } from '../../generated/validators.js';
import { callContext, principalOf } from '../call-context.ts';
import { checkedBody } from '../checked-body.ts';
import { type MetadataForm, metadataForm, writtenInForm } from '../metadata-form.ts';
import { type SendEventsDeps, sendEvents } from '../send-events.ts';
import { sendJsonText } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ChatCompletionsDeps extends SendEventsDeps {
  completeChat: CompleteChat;
  metadataForm: MetadataForm;
}

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute(deps: ChatCompletionsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkedBody(ctx, validateChatRequest, deps.telemetry);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await deps.completeChat(principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') sendJsonText(ctx, writtenInForm(outcome.completion, form));
    else await sendEvents(deps, ctx, outcome.chunks, form, { end: '[DONE]' });
  };
}
