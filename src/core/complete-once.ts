import type { ChatRequest } from '../generated/types.ts';
import { callMetadata, chatCompletion, type DispatchedAnswer } from './chat-answer.ts';
import { type ChatExchangeDeps, exchangeChat, producedBy } from './chat-exchange.ts';
import type { JsonText } from './json-text.ts';
import { chatUsage } from './meter.ts';
import { serveWhole } from './whole-call.ts';

/** Routes an opened call to a whole answer and settles it; the answer is returned when the settlement is committed. */
export async function completeOnce(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
  request: ChatRequest,
): Promise<JsonText> {
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
  );
  answer.keep?.({
    mapping: target.mapping,
    upstreamModel: upstream.model,
    usage,
    kept: { kind: 'whole', json: upstream.json },
  });
  const metadata = callMetadata(answer, target.mapping, upstream.model, attempts);
  return chatCompletion(
    answer,
    upstream.json,
    target.mapping.modelId,
    chatUsage(usage, cost, answer.call.outputLimit(target.mapping)),
    metadata,
  );
}
