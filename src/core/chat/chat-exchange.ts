import type { ChatRequest } from '../../generated/types.ts';
import type { OutboundResponse } from '../../net/exchange.ts';
import type { Transport } from '../../net/transport.ts';
import type { TokenEstimator } from '../../providers/tokens/token-estimate.ts';
import type { Answers } from '../call/answers.ts';
import type { Call } from '../call/call.ts';
import { type ExchangeLimits, endpointOf, exchange } from '../call/exchange.ts';
import type { RouteDeps } from '../call/route.ts';
import type { FindUnsupported } from '../models/resolve.ts';
import type { Target } from '../models/target.ts';
import { Produced } from '../price/produced.ts';

/** What both kinds of answer need. */
export interface ChatExchangeDeps extends RouteDeps {
  readonly transport: Transport;
  readonly answers: Answers;
  readonly estimator: TokenEstimator;
}

/** Sends a chat request to a target; whatever is not a success of the wanted kind is thrown as the adapter reads it. */
export async function exchangeChat<Kind extends OutboundResponse['kind']>(
  { transport }: ChatExchangeDeps,
  target: Target,
  call: Call,
  request: ChatRequest,
  kind: Kind,
  limits: ExchangeLimits,
): Promise<Extract<OutboundResponse, { kind: Kind }>> {
  const { mapping, provider } = target;
  const limit = call.outputLimit(mapping);
  const chatCall = {
    request,
    mapping,
    namedFields: provider.namedFields,
    ...(limit === undefined ? {} : { maxOutputTokens: limit.tokens }),
  };
  const outbound = provider.adapter.buildRequest(chatCall, endpointOf(target));
  return exchange(transport, target, outbound, kind, limits);
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
