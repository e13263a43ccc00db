import type { OutboundRequest } from '../../net/transport.ts';
import type { Endpoint } from '../wire/adapter.ts';
import { isRecord, parseJson } from '../wire/json.ts';
import { badResponse } from '../wire/upstream-error.ts';
import { disguisedError, isError } from './error.ts';

/** A JSON request to a path under the base URL. @param stream whether the answer comes as events, not whole */
export function openAiPost(path: string, body: object, endpoint: Endpoint, stream = false): OutboundRequest {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
  };
  if (endpoint.secret !== undefined) headers.authorization = `Bearer ${endpoint.secret}`;
  return {
    origin: endpoint.base.origin,
    path: `${endpoint.base.path}${path}`,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    stream,
    addresses: endpoint.addresses,
  };
}

/** The object that a success is. @throws UpstreamError `bad_response`, or what an error in disguise says that it is */
export function openAiAnswer(text: string, secret: string | undefined): Readonly<Record<string, unknown>> {
  const answer = parseJson(text);
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  if (isError(answer)) throw disguisedError(answer, secret);
  return answer;
}
