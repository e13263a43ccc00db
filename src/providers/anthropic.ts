import type { OutboundRequest } from '../net/transport.ts';
import type { Adapter, ChatCall, Endpoint } from './adapter.ts';
import { parseError } from './anthropic-error.ts';
import { messagesBody } from './anthropic-request.ts';
import { parseResponse } from './anthropic-response.ts';
import { parseStream } from './anthropic-stream.ts';
import { notTakenByProvider } from './upstream-error.ts';

const VERSION = '2023-06-01';
/** More features than a request can want. */
const MAX_BETAS = 20;

/** The adapter for Anthropic's Messages API, and for servers that speak it. */
export const anthropicAdapter: Adapter = { buildRequest, parseResponse, parseStream, parseError };

function buildRequest(call: ChatCall, { base, addresses, secret }: Endpoint): OutboundRequest {
  const stream = call.request.stream === true;
  const given: Readonly<Record<string, unknown>> = { ...call.request };
  const betas = betasOf(given.betas);
  return {
    origin: base.origin,
    path: `${base.path.endsWith('/v1') ? base.path : `${base.path}/v1`}/messages`,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: stream ? 'text/event-stream' : 'application/json',
      'anthropic-version': VERSION,
      ...(secret === undefined ? {} : { 'x-api-key': secret }),
      ...(betas.length === 0 ? {} : { 'anthropic-beta': betas.join(',') }),
    },
    body: JSON.stringify(messagesBody(call)),
    stream,
    addresses,
  };
}

/** Names of beta features. They go into a header: nothing but names may pass. @throws UpstreamError `rejected` */
function betasOf(betas: unknown): string[] {
  if (betas == null) return [];
  if (!Array.isArray(betas) || betas.length > MAX_BETAS || !betas.every(isBetaName)) {
    throw notTakenByProvider('The provider takes as `betas` a list of at most 20 names of features.');
  }
  return betas;
}

const isBetaName = (name: unknown): name is string => typeof name === 'string' && /^[A-Za-z0-9._-]{1,100}$/.test(name);
