import type { ChatRequest } from '../generated/types.ts';
import type { OutboundResponse } from '../net/exchange.ts';
import type { Transport } from '../net/transport.ts';
import type { TokenEstimator } from '../providers/token-estimate.ts';
import type { Store } from '../store/store.ts';
import type { Answers } from './answers.ts';
import { toApiError } from './api-error.ts';
import { type Call, failed, releaseCall, settleCall } from './call.ts';
import type { CallContext } from './call-context.ts';
import { type ExchangeLimits, endpointOf, exchange } from './exchange.ts';
import { Produced } from './produced.ts';
import type { FindUnsupported } from './resolve.ts';
import { type RouteDeps, RouteFailure } from './route.ts';
import type { Target } from './target.ts';

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

/** Status and code under which a failed call is booked; 499 when the caller left, who is told nothing. */
export function failureCode(error: unknown, context: CallContext): [status: number, code: string] {
  if (context.signal.aborted) return [499, 'client_closed_request'];
  const { status, code } = toApiError(error);
  return [status, code];
}

/**
 * Settles a call that failed, or releases it if nothing was sent; returns the error for the caller. It costs what its attempts
 * are charged for.
 */
export async function settleFailure(store: Store, call: Call, context: CallContext, error: unknown): Promise<unknown> {
  const reason = error instanceof RouteFailure ? error.cause : error;
  const [statusCode, errorCode] = failureCode(reason, context);
  if (!(error instanceof RouteFailure)) {
    await settleCall(store, call, failed(statusCode, errorCode, []));
  } else if (error.target !== undefined) {
    const { attempts, charges, target } = error;
    await settleCall(store, call, failed(statusCode, errorCode, attempts, charges, target));
  } else {
    await releaseCall(store, call, statusCode, errorCode);
  }
  return reason;
}
