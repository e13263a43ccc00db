import type { OutboundRequest } from '../net/transport.ts';
import type { Endpoint } from './adapter.ts';
import { isRecord, parseJson } from './json.ts';
import { disguisedError, isError } from './openai-error.ts';
import { badResponse, notTakenByProvider } from './upstream-error.ts';

/** By which resellers and other gateways take another model than `model`: one that no policy decided on and nobody priced. */
const OTHER_MODELS: ReadonlySet<string> = new Set(['models', 'fallbacks', 'preset']);

function refuseOtherModels(body: object): void {
  for (const [field, value] of Object.entries(body)) {
    if (!OTHER_MODELS.has(field) || value === null || value === undefined) continue;
    throw notTakenByProvider(
      `\`${field}\` is not taken: the gateway itself chooses among the models that are permitted.`,
    );
  }
}

/**
 * A JSON request to a path under the base URL. @param stream whether the answer shall come as events, not whole
 * @throws UpstreamError `rejected` for a body that names models beside its own
 */
export function openAiPost(path: string, body: object, endpoint: Endpoint, stream = false): OutboundRequest {
  refuseOtherModels(body);
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
export function openAiAnswer(text: string): Readonly<Record<string, unknown>> {
  const answer = parseJson(text);
  if (!isRecord(answer)) throw badResponse('The provider sent a malformed answer.');
  if (isError(answer)) throw disguisedError(answer);
  return answer;
}
