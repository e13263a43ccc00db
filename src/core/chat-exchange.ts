import { estimateUsage, type Usage } from '../domain/usage.ts';
import type { ChatRequest, ChunkDelta, CompletionMessage, RoutingAttempt } from '../generated/types.ts';
import type { OutboundResponse } from '../net/exchange.ts';
import type { Transport } from '../net/transport.ts';
import type { Store } from '../store/store.ts';
import { toApiError } from './api-error.ts';
import { type Call, failed, settleCall } from './call.ts';
import type { CallContext } from './call-context.ts';
import { type ExchangeLimits, endpointOf, exchange } from './exchange.ts';
import { type RouteDeps, RouteFailure } from './route.ts';
import type { Target } from './target.ts';

/** What both kinds of answer need. */
export interface ChatExchangeDeps extends RouteDeps {
  readonly store: Store;
  readonly transport: Transport;
}

/** Sends a chat request to a target; whatever is not a success of the wanted kind is thrown as the adapter reads it. */
export async function exchangeChat<Kind extends OutboundResponse['kind']>(
  { transport }: ChatExchangeDeps,
  target: Target,
  request: ChatRequest,
  kind: Kind,
  limits: ExchangeLimits,
): Promise<Extract<OutboundResponse, { kind: Kind }>> {
  const { mapping, provider } = target;
  const outbound = provider.adapter.buildRequest({ request: { ...request }, mapping }, endpointOf(target));
  return exchange(transport, target, outbound, kind, limits);
}

/** The bytes of what a message, or a part of one, says: thoughts and tool calls too. For an estimate. */
export function saidBytes({ content, reasoning, tool_calls: calls }: CompletionMessage | ChunkDelta): number {
  // Unlike the others, thoughts pass as the provider sent them, whatever their type.
  const thoughts = typeof reasoning === 'string' ? reasoning : '';
  const tools = calls === undefined || calls.length === 0 ? '' : JSON.stringify(calls);
  return Buffer.byteLength(content ?? '') + Buffer.byteLength(thoughts) + Buffer.byteLength(tools);
}

/** A guess at what a provider that reported nothing consumed. */
export const estimatedUsage = (request: ChatRequest, answerBytes: number): Usage =>
  estimateUsage(Buffer.byteLength(JSON.stringify(request.messages)), answerBytes);

/** Status and code under which a failed call is booked; 499 when the caller left, who is told nothing. */
export function failureCode(error: unknown, context: CallContext): [status: number, code: string] {
  if (context.signal.aborted) return [499, 'client_closed_request'];
  const { status, code } = toApiError(error);
  return [status, code];
}

/** Settles a call that failed, at no cost; returns the error for the caller. */
export async function settleFailure(store: Store, call: Call, context: CallContext, error: unknown): Promise<unknown> {
  const reason = error instanceof RouteFailure ? error.cause : error;
  const attempts: readonly RoutingAttempt[] = error instanceof RouteFailure ? error.attempts : [];
  await settleCall(store, call, failed(...failureCode(reason, context), attempts));
  return reason;
}
