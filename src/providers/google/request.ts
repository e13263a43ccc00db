import type { OutboundRequest } from '../../net/transport.ts';
import type { ChatCall, Endpoint } from '../wire/adapter.ts';
import { namedFields } from '../wire/request-fields.ts';
import { toConversation } from './contents.ts';
import { toGenerationConfig } from './generation-config.ts';
import { googleOptions } from './options.ts';
import { toToolFields } from './tools.ts';

const VERSIONED = /\/v1(?:alpha|beta)?$/;
const NAMED = /^(?:models|tunedModels)\//;

/** The path of a method of a model; a base that names no version of the API means `v1beta`, which has every field we send. */
function methodPath(basePath: string, externalId: string, method: string): string {
  const base = VERSIONED.test(basePath) ? basePath : `${basePath}/v1beta`;
  const name = NAMED.test(externalId) ? externalId : `models/${externalId}`;
  return `${base}/${name.split('/').map(encodeURIComponent).join('/')}:${method}`;
}

/** A request to Google: the key goes into a header, never into the address. */
export function googleRequest(
  endpoint: Endpoint,
  externalId: string,
  body: Readonly<Record<string, unknown>>,
  stream: boolean,
): OutboundRequest {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: stream ? 'text/event-stream' : 'application/json',
  };
  if (endpoint.secret !== undefined) headers['x-goog-api-key'] = endpoint.secret;
  const method = stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
  return {
    origin: endpoint.base.origin,
    path: methodPath(endpoint.base.path, externalId, method),
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    stream,
    addresses: endpoint.addresses,
  };
}

/** A chat as a call of `generateContent`. @throws UpstreamError `rejected` for what the provider does not take */
export function buildRequest(call: ChatCall, endpoint: Endpoint): OutboundRequest {
  const { request, mapping } = call;
  const { externalId } = mapping;
  const options = googleOptions(request);
  const generationConfig = { ...toGenerationConfig(call), ...options.generation };
  const body = {
    ...toConversation(request.messages, externalId),
    ...toToolFields(request),
    ...(Object.keys(generationConfig).length === 0 ? {} : { generationConfig }),
    ...options.body,
    ...namedFields(request, call.namedFields),
  };
  return googleRequest(endpoint, externalId, body, request.stream === true);
}
