import type { ChatRequest } from '../generated/types.ts';
import type { OutboundResponse } from '../net/exchange.ts';
import type { Transport } from '../net/transport.ts';
import type { TokenEstimator } from '../providers/token-estimate.ts';
import type { Store } from '../store/store.ts';
import { toApiError } from './api-error.ts';
import { type Call, failed, releaseCall, settleCall } from './call.ts';
import type { CallContext } from './call-context.ts';
import { type ExchangeLimits, endpointOf, exchange } from './exchange.ts';
import { type RouteDeps, RouteFailure } from './route.ts';
import type { Target } from './target.ts';

/** What both kinds of answer need. */
export interface ChatExchangeDeps extends RouteDeps {
  readonly store: Store;
  readonly transport: Transport;
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
    request: { ...request },
    mapping,
    ...(limit === undefined ? {} : { maxOutputTokens: limit.tokens }),
  };
  const outbound = provider.adapter.buildRequest(chatCall, endpointOf(target));
  return exchange(transport, target, outbound, kind, limits);
}

/** Status and code under which a failed call is booked; 499 when the caller left, who is told nothing. */
export function failureCode(error: unknown, context: CallContext): [status: number, code: string] {
  if (context.signal.aborted) return [499, 'client_closed_request'];
  const { status, code } = toApiError(error);
  return [status, code];
}

/** Settles a call that failed, at no cost, or releases it if nothing was sent; returns the error for the caller. */
export async function settleFailure(store: Store, call: Call, context: CallContext, error: unknown): Promise<unknown> {
  const reason = error instanceof RouteFailure ? error.cause : error;
  const [statusCode, errorCode] = failureCode(reason, context);
  if (error instanceof RouteFailure && !error.dispatched) await releaseCall(store, call, statusCode, errorCode);
  else
    await settleCall(store, call, failed(statusCode, errorCode, error instanceof RouteFailure ? error.attempts : []));
  return reason;
}
