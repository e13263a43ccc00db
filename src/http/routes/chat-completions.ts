import type { CompleteChat } from '../../core/complete-chat.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateChatRequest } from '../../generated/validators.js';
import type { Telemetry } from '../../telemetry.ts';
import { callContext, principalOf } from '../call-context.ts';
import { writeEventStream } from '../event-stream.ts';
import { inForm, type MetadataForm, metadataForm } from '../metadata-form.ts';
import { isOurFault } from '../middleware/error-envelope.ts';
import { sendJson } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ChatCompletionsDeps {
  completeChat: CompleteChat;
  telemetry: Telemetry;
  keepAliveMs: number;
  metadataForm: MetadataForm;
}

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute(deps: ChatCompletionsDeps): AppMiddleware {
  const { completeChat, telemetry, keepAliveMs } = deps;
  return async (ctx) => {
    const request = checkOpenAiShape(validateChatRequest, ctx.state.body);
    const form = metadataForm(ctx, deps.metadataForm);
    const outcome = await completeChat(principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') {
      sendJson(ctx, inForm(outcome.completion, form));
      return;
    }
    await writeEventStream(ctx.res, outcome.chunks, {
      signal: ctx.state.signal,
      keepAliveMs,
      formed: (chunk) => inForm(chunk, form),
      onFailure(failure) {
        ctx.state.errorCode = failure.code;
        // A stream that a provider broke is told of where its attempt is.
        if (isOurFault(failure)) telemetry.failure(ctx.state.requestId, failure);
      },
    });
    ctx.respond = false;
  };
}
