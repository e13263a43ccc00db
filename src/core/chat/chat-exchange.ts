import type { ChatRequest } from '../../generated/types.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { TokenEstimator } from '../../providers/tokens/token-estimate.ts';
import type { Call } from '../call/call.ts';
import { type ExchangeDeps, endpointOf } from '../call/exchange.ts';
import type { RouteDeps } from '../call/route.ts';
import type { Target } from '../models/reach.ts';
import type { FindUnsupported } from '../models/resolve.ts';
import { Produced } from '../price/produced.ts';

/** What it takes to dispatch a chat. */
export interface DispatchChatDeps extends RouteDeps, ExchangeDeps {
  readonly estimator: TokenEstimator;
}

/** A chat request as a target is sent it, held to what the key's limit pays for. */
export function outboundChat(call: Call, request: ChatRequest, target: Target): OutboundRequest {
  const { mapping, provider } = target;
  const limit = call.outputLimit(mapping);
  const maxOutputTokens = limit === undefined ? {} : { maxOutputTokens: limit.tokens };
  const chatCall = { request, mapping, namedFields: provider.namedFields, ...maxOutputTokens };
  return provider.adapter.buildRequest(chatCall, endpointOf(target));
}

/** What of a chat request a provider cannot take. */
export const unsupportedIn =
  (request: ChatRequest): FindUnsupported =>
  (mapping, { adapter, namedFields }) =>
    adapter.unsupported({ request, mapping, namedFields });

/** Fields of a chat request that a target leaves out. */
export const droppedIn =
  (request: ChatRequest) =>
  ({ mapping, provider: { adapter, namedFields } }: Target): readonly string[] =>
    adapter.dropped({ request, mapping, namedFields });

/** What a target produces for a request, for its bill. */
export function producedBy(call: Call, { mapping, provider }: Target, request: ChatRequest): Produced {
  const limit = call.outputLimit(mapping);
  return new Produced({
    mostOutputTokens: limit && limit.tokens * (request.n ?? 1),
    unreportedSearches: provider.adapter.unreportedSearches?.(request) ?? 0,
  });
}
