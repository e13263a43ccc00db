import type { ChatCompletion, ChatRequest } from '../generated/types.ts';
import { callMetadata, chatCompletion, type DispatchedAnswer } from './chat-answer.ts';
import { type ChatExchangeDeps, droppedIn, exchangeChat, producedBy } from './chat-exchange.ts';
import { chatUsage } from './meter.ts';
import { keptWhole } from './response-cache.ts';
import { serveWhole } from './whole-call.ts';

/** Routes an opened call to a whole answer and settles it; the answer is returned when the settlement is committed. */
export async function completeOnce(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): Promise<ChatCompletion> {
  const {
    value: upstream,
    target,
    attempts,
    usage,
    cost,
  } = await serveWhole(
    deps,
    answer.call,
    answer.facts,
    async (each, limits) =>
      each.provider.adapter.parseResponse(
        await exchangeChat(deps, each, answer.call, request, 'gathered', limits),
        each.credential.secret,
      ),
    (completion, each) => {
      const produced = producedBy(answer.call, each, request);
      produced.addWhole(completion);
      return produced.usage(deps.estimator, request, each.mapping);
    },
    { dropped: droppedIn(request) },
  );
  const dropped = droppedIn(request)(target);
  answer.facts.context.onDropped(dropped);
  answer.keep?.({
    mapping: target.mapping,
    upstreamModel: upstream.model,
    usage,
    dropped,
    kept: keptWhole(upstream),
  });
  const metadata = callMetadata(answer, target.mapping, upstream.model, attempts);
  return chatCompletion(
    answer,
    upstream,
    target.mapping.modelId,
    chatUsage(usage, cost, answer.call.outputLimit(target.mapping)),
    metadata,
  );
}
