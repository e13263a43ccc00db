import type { CompleteChat } from '../../core/complete-chat.ts';
import { checkOpenAiShape } from '../../domain/check-shape.ts';
import { validateChatRequest } from '../../generated/validators.js';
import type { Telemetry } from '../../telemetry.ts';
import { callContext, principalOf } from '../call-context.ts';
import { writeEventStream } from '../event-stream.ts';
import { isOurFault } from '../middleware/error-envelope.ts';
import { sendJsonText } from '../send-json.ts';
import type { AppMiddleware } from '../state.ts';

export interface ChatCompletionsDeps {
  completeChat: CompleteChat;
  telemetry: Telemetry;
  keepAliveMs: number;
}

/** `POST /v1/chat/completions`: OpenAI's request and answer, JSON or server-sent events. */
export function chatCompletionsRoute({ completeChat, telemetry, keepAliveMs }: ChatCompletionsDeps): AppMiddleware {
  return async (ctx) => {
    const request = checkOpenAiShape(validateChatRequest, ctx.state.body);
    const outcome = await completeChat(principalOf(ctx), callContext(ctx), request);
    if (outcome.kind === 'completion') {
      sendJsonText(ctx, outcome.completion);
      return;
    }
    await writeEventStream(ctx.res, outcome.chunks, {
      signal: ctx.state.signal,
      keepAliveMs,
      onFailure(failure) {
        ctx.state.errorCode = failure.code;
        // A stream that a provider broke is told of where its attempt is.
        if (isOurFault(failure)) telemetry.failure(ctx.state.requestId, failure);
      },
    });
    ctx.respond = false;
  };
}
