import type { OutboundRequest } from '../../net/transport.ts';
import type { Adapter, ChatCall, Endpoint } from '../wire/adapter.ts';
import { record } from '../wire/fields.ts';
import { anthropicUsage, parseResponse, reportUsage } from './answer.ts';
import { parseError } from './error.ts';
import { anthropicOptions, dropped, messagesBody, unsupported } from './request.ts';
import { parseStream } from './stream.ts';

const VERSION = '2023-06-01';
/** The adapter for Anthropic's Messages API, and for servers that speak it. */
export const anthropicAdapter: Adapter = {
  unsupported,
  dropped,
  buildRequest,
  parseResponse,
  parseStream,
  reportedUsage: (answer) => anthropicUsage(reportUsage({}, record(answer).usage)),
  parseError,
};

function buildRequest(call: ChatCall, { base, addresses, secret }: Endpoint): OutboundRequest {
  const stream = call.request.stream === true;
  const { betas } = anthropicOptions(call.request);
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
