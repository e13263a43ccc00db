import type { ChatRequest } from '../../generated/types.ts';
import { serveWhole } from '../call/whole-call.ts';
import { chatUsage } from '../price/meter.ts';
import { callMetadata, chatCompletion, type DispatchedAnswer, type WrittenCompletion } from './chat-answer.ts';
import { type ChatExchangeDeps, droppedIn, exchangeChat, producedBy } from './chat-exchange.ts';

/** Routes an opened call to a whole answer and settles it; the answer is returned when the settlement is committed. */
export async function completeOnce(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): Promise<WrittenCompletion> {
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
    async (each, limits) => {
      const response = await exchangeChat(deps, each, answer.call, request, 'gathered', limits);
      return deps.answers.read(each, { operation: 'chat' }, response, limits);
    },
    (told, each) => {
      const produced = producedBy(answer.call, each, request);
      produced.addTold(told);
      return produced.usage(deps.estimator, request, each.mapping);
    },
    { dropped: droppedIn(request) },
  );
  const [json] = upstream.json;
  const dropped = droppedIn(request)(target);
  answer.facts.context.onDropped(dropped);
  answer.keep?.({
    mapping: target.mapping,
    upstreamModel: upstream.model,
    usage,
    dropped,
    kept: { kind: 'whole', json },
  });
  const metadata = callMetadata(answer, target.mapping, upstream.model, attempts);
  return chatCompletion(
    answer,
    json,
    target.mapping.modelId,
    chatUsage(usage, cost, answer.call.outputLimit(target.mapping)),
    metadata,
  );
}
