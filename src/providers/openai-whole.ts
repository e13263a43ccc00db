import type { OutboundRequest } from '../net/transport.ts';
import type { Endpoint } from './adapter.ts';
import { isRecord, parseJson } from './json.ts';
import { badResponse } from './upstream-error.ts';

/** A JSON request whose answer comes whole, to a path under the base URL. */
export function openAiPost(path: string, body: object, endpoint: Endpoint): OutboundRequest {
  const headers: Record<string, string> = { 'content-type': 'application/json', accept: 'application/json' };
  if (endpoint.secret !== undefined) headers.authorization = `Bearer ${endpoint.secret}`;
  return {
    origin: endpoint.base.origin,
    path: `${endpoint.base.path}${path}`,
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    stream: false,
    addresses: endpoint.addresses,
  };
}

/** The object that a success is. @throws UpstreamError `bad_response`, for an error in disguise too, whose text is kept back */
export function openAiAnswer(text: string): Readonly<Record<string, unknown>> {
  const answer = parseJson(text);
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  if (answer.error !== undefined && answer.error !== null) {
    throw badResponse('The provider reported an error inside a successful answer.');
  }
  return answer;
}
