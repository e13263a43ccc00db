import type { GatheredResponse, OutboundResponse } from '../../net/exchange.ts';
import type { OutboundRequest, SendOptions, Transport } from '../../net/transport.ts';
import type { Adapter, Endpoint, WholeTranslation } from '../../providers/wire/adapter.ts';
import { parseJson } from '../../providers/wire/json.ts';
import { type UpstreamError, unreadable } from '../../providers/wire/upstream-error.ts';
import type { Target } from '../models/reach.ts';
import type { Answers } from './answers.ts';
import type { AnswerKind, ReadAnswer } from './read-answer.ts';

export interface ExchangeDeps {
  readonly transport: Transport;
  readonly answers: Answers;
}

/** Within what one exchange must be over, and what it may take of the process. */
export interface ExchangeLimits extends SendOptions {
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
  const response = await transport.send(request, { ...limits, secret: credential.secret });
  if (isKind(response, kind) && response.status >= 200 && response.status <= 299) return response;
  if (response.kind === 'gathered') throw errorIn(response, provider.adapter, credential.secret);
  throw new Error('a gathered answer was asked for and a stream came');
}

function errorIn(response: GatheredResponse, adapter: Adapter, secret: string | undefined): UpstreamError {
  try {
    const error = adapter.parseError(response, secret);
    // A success in another form than was asked for, whole instead of streamed, is paid for.
    return response.status <= 299 ? error.withUsage(adapter.reportedUsage(parseJson(response.text))) : error;
  } catch (error) {
    return unreadable(error, response.status);
  }
}

/** One call of an operation whose answer comes whole. @throws TransportError, UpstreamError, ApiError 503 */
export async function exchangeWhole<Call>(
  { transport, answers }: ExchangeDeps,
  target: Target,
  translation: WholeTranslation<Call, unknown>,
  kind: AnswerKind & { readonly call: Call },
  limits: ExchangeLimits,
): Promise<ReadAnswer> {
  const request = translation.buildRequest(kind.call, endpointOf(target));
  const response = await exchange(transport, target, request, 'gathered', limits);
  return answers.read(target, kind, response, limits);
}

const isKind = <Kind extends OutboundResponse['kind']>(
  response: OutboundResponse,
  kind: Kind,
): response is Extract<OutboundResponse, { kind: Kind }> => response.kind === kind;
