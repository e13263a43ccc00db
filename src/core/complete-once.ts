import type { ChatCompletion, ChatRequest } from '../generated/types.ts';
import type { UpstreamCompletion } from '../providers/adapter.ts';
import { settleCall } from './call.ts';
import { callMetadata, chatCompletion, type DispatchedAnswer } from './chat-answer.ts';
import { type ChatExchangeDeps, exchangeChat, settleFailure } from './chat-exchange.ts';
import { chatUsage, costOf } from './meter.ts';
import { Produced } from './produced.ts';
import { type Routed, route } from './route.ts';

/** Routes an opened call to a whole answer and settles it; the answer is returned when the settlement is committed. */
export async function completeOnce(
  deps: ChatExchangeDeps,
  answer: DispatchedAnswer,
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
  const produced = new Produced();
  produced.report(upstream.usage);
  for (const { index, message } of upstream.choices) produced.say(index, message);
  const usage = await produced.usage(deps.estimator, request, target.mapping);
  const cost = costOf(usage, target.mapping);
  await settleCall(deps.store, call, { statusCode: 200, errorCode: null, target, attempts, usage, cost });
  answer.keep?.({
    mapping: target.mapping,
    upstreamModel: upstream.model,
    usage,
    kept: { kind: 'whole', upstream, characters: JSON.stringify(upstream.choices).length },
  });
  const metadata = callMetadata(answer, target.mapping, upstream.model, attempts);
  return chatCompletion(answer, upstream, target.mapping.modelId, chatUsage(usage, cost), metadata);
}
