import type { ChatCompletion, ChatRequest } from '../generated/types.ts';
import type { UpstreamCompletion } from '../providers/adapter.ts';
import { settleCall } from './call.ts';
import { type AnswerFacts, callMetadata, chatCompletion } from './chat-answer.ts';
import { type ChatExchangeDeps, estimatedUsage, exchangeChat, saidBytes, settleFailure } from './chat-exchange.ts';
import { chatUsage, costOf } from './meter.ts';
import { type Routed, route } from './route.ts';

const answerBytes = (choices: UpstreamCompletion['choices']): number =>
  choices.reduce((sum, { message }) => sum + saidBytes(message), 0);

/** Routes an opened call to a whole answer and settles it; the answer is returned when the settlement is committed. */
export async function completeOnce(
  deps: ChatExchangeDeps,
  answer: AnswerFacts,
  request: ChatRequest,
): Promise<ChatCompletion> {
  const { call, facts } = answer;
  const { context, principal } = facts;
  let routed: Routed<UpstreamCompletion>;
  try {
    routed = await route(deps, call, principal, context, async (target, totalTimeoutMs) => {
      const response = await exchangeChat(deps, target, request, 'gathered', {
        signal: context.signal,
        totalTimeoutMs,
      });
      return target.provider.adapter.parseResponse(response);
    });
  } catch (error) {
    throw await settleFailure(deps.store, call, context, error);
  }
  const { value: upstream, target, attempts } = routed;
  const usage = upstream.usage ?? estimatedUsage(request, answerBytes(upstream.choices));
  const cost = costOf(usage, target.mapping);
  await settleCall(deps.store, call, { statusCode: 200, errorCode: null, target, attempts, usage, cost });
  const metadata = callMetadata(answer, routed, upstream.model);
  return chatCompletion(answer, upstream, target.mapping.modelId, chatUsage(usage, cost), metadata);
}
