import type { OutboundResponse } from '../net/exchange.ts';
import type { OutboundRequest, Transport } from '../net/transport.ts';
import type { Endpoint, WholeTranslation } from '../providers/adapter.ts';
import type { Target } from './target.ts';

/** Within what one exchange must be over. */
export interface ExchangeLimits {
  readonly signal: AbortSignal;
  readonly totalTimeoutMs: number;
}

/** Where a target's requests go, and with which secret. */
export const endpointOf = ({ provider: { base, addresses }, credential: { secret } }: Target): Endpoint => ({
  base,
  addresses,
  ...(secret === undefined ? {} : { secret }),
});

/** Sends a request to a target; whatever is not a success of the wanted kind is thrown as the adapter reads it. */
export async function exchange<Kind extends OutboundResponse['kind']>(
  transport: Transport,
  { provider, credential }: Target,
  request: OutboundRequest,
  kind: Kind,
  limits: ExchangeLimits,
): Promise<Extract<OutboundResponse, { kind: Kind }>> {
  const response = await transport.send(request, limits);
  if (isKind(response, kind) && response.status >= 200 && response.status <= 299) return response;
  if (response.kind === 'gathered') throw provider.adapter.parseError(response, credential.secret);
  throw new Error('a gathered answer was asked for and a stream came');
}

/** One call of an operation whose answer comes whole. @throws TransportError, UpstreamError */
export async function exchangeWhole<Call, Answer>(
  transport: Transport,
  target: Target,
  translation: WholeTranslation<Call, Answer>,
  call: Call,
  limits: ExchangeLimits,
): Promise<Answer> {
  const request = translation.buildRequest(call, endpointOf(target));
  const response = await exchange(transport, target, request, 'gathered', limits);
  return translation.parseResponse(response, call, target.credential.secret);
}

const isKind = <Kind extends OutboundResponse['kind']>(
  response: OutboundResponse,
  kind: Kind,
): response is Extract<OutboundResponse, { kind: Kind }> => response.kind === kind;
