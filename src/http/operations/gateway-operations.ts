import { json, type Listener, type Operation, type QueryParameter } from './operation.ts';

const flag = (description: string): QueryParameter => ({ description, type: 'boolean' });

const LIST_QUERY = {
  include_deactivated: flag('Deactivated models and mappings too.'),
  exclude_deprecated: flag('Without what is deprecated.'),
  no_training: flag('Only mappings of providers that are known not to train on what they are sent.'),
  mapped: flag('One entry for each mapping, under `provider/model`.'),
  include_restricted: flag('With a key: also what this key may not use.'),
};

const CALL_HEADERS = {
  'x-request-id': 'Of the caller; answered as `x-client-request-id`.',
  'x-no-cache': '`true`: the answer comes from a provider and is not kept.',
  'x-no-fallback': '`true`: one attempt only.',
};

const CALL_ERRORS = [400, 401, 402, 403, 404, 413, 415, 429, 502, 503, 504];

const operations = [
  {
    method: 'post',
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    tag: 'Chat',
    summary: 'Complete a chat',
    description:
      "OpenAI's request and answer, with usage, cost and metadata of the gateway. Next to OpenAI's fields it takes those that the provider documents, unless they choose a model or raise the price; any other is 400 `unsupported_parameter`. A field that only tunes the answer (`seed`, `frequency_penalty`, …) and that the chosen provider does not take is left out, and the header `x-dropped-parameters` names it. With `stream` the answer is server-sent events, each a `ChatChunk`, then `[DONE]`; a failure after the first byte is an event of the stream.",
    key: 'gateway',
    headers: CALL_HEADERS,
    request: 'ChatRequest',
    answer: {
      status: 200,
      description: 'The completion.',
      content: { 'application/json': 'ChatCompletion', 'text/event-stream': 'ChatChunk' },
    },
    errors: CALL_ERRORS,
  },
  {
    method: 'post',
    path: '/v1/images/generations',
    id: 'createImage',
    tag: 'Images',
    summary: 'Make images',
    description:
      "OpenAI's request and answer, with usage, cost and metadata of the gateway, and `aspect_ratio` for models that take one instead of a size. Without `model`: `DEFAULT_IMAGE_MODEL`. Images are passed on as the provider gives them, base64 or URL, and are not kept. With `stream` the answer is server-sent events, each an `ImageEvent`: up to 3 `partial_images` where the provider gives them, then each whole image.",
    key: 'gateway',
    headers: { 'x-request-id': CALL_HEADERS['x-request-id'], 'x-no-fallback': CALL_HEADERS['x-no-fallback'] },
    request: 'ImageRequest',
    answer: {
      status: 200,
      description: 'The images, as the provider gives them.',
      content: { 'application/json': 'ImageAnswer', 'text/event-stream': 'ImageEvent' },
    },
    errors: CALL_ERRORS,
  },
  {
    method: 'post',
    path: '/v1/moderations',
    id: 'createModeration',
    tag: 'Moderations',
    summary: 'Judge texts and images',
    description:
      "OpenAI's request and answer, with usage, cost and metadata of the gateway. `MODERATION_MODEL` judges, whatever `model` says; of the rules only those on providers and addresses apply.",
    key: 'gateway',
    headers: { 'x-request-id': CALL_HEADERS['x-request-id'], 'x-no-fallback': CALL_HEADERS['x-no-fallback'] },
    request: 'ModerationRequest',
    answer: json('ModerationAnswer', 'One verdict for each input.'),
    errors: CALL_ERRORS,
  },
  {
    method: 'get',
    path: '/v1/models',
    id: 'listModels',
    tag: 'Models',
    summary: 'List models',
    description:
      'Without a key the whole catalogue; with one, what it may use now, judged by the same policy as calls.',
    key: 'optional',
    query: LIST_QUERY,
    answer: json('ModelList', 'The models.'),
    errors: [400, 401, 429, 503],
  },
  {
    method: 'get',
    path: '/v1/models/{id}',
    isOpenEnded: true,
    id: 'getModel',
    tag: 'Models',
    summary: 'One model',
    description:
      'By canonical id, alias or `provider/model`, with `/` as it is or percent-encoded. 404 where the key may not use it.',
    key: 'optional',
    query: LIST_QUERY,
    answer: json('Model', 'The model.'),
    errors: [400, 401, 404, 429, 503],
  },
] as const satisfies readonly Operation[];

const mcp = [
  {
    method: 'post',
    path: '/mcp',
    id: 'sendMcpMessage',
    tag: 'MCP',
    summary: 'MCP over streamable HTTP',
    description:
      'The gateway as a tool server. Revisions 2024-11-05 to 2025-11-25 by handshake, and 2026-07-28 without; no sessions. Errors of HTTP are JSON-RPC errors whose `data` is the `error` of the envelope.',
    key: 'gateway',
    headers: {
      accept:
        'With `text/event-stream`, and a `progressToken` in the message, the answer is server-sent events with progress; otherwise it is JSON.',
      'mcp-protocol-version': 'The revision that the client speaks.',
    },
    request: 'McpMessage',
    answer: {
      status: 200,
      description: 'The response. A notification is answered with 202 and nothing.',
      content: { 'application/json': 'McpMessage', 'text/event-stream': 'McpMessage' },
    },
    errors: [400, 401, 403, 404, 413, 415, 429, 503],
  },
  {
    method: 'get',
    path: '/mcp',
    id: 'getMcp',
    tag: 'MCP',
    summary: 'The MCP endpoint is there',
    description: 'With `accept: text/event-stream` and a key: a stream for notifications, of which there are none.',
    key: 'optional',
    answer: {
      status: 200,
      description: 'It is.',
      content: { 'application/json': 'Health', 'text/event-stream': 'McpMessage' },
    },
    errors: [401, 403, 429, 503],
  },
] as const satisfies readonly Operation[];

export const gateway = {
  title: 'Portcullis gateway',
  description: 'One OpenAI-compatible API in front of many providers. A compiled policy decides every call.',
  tags: {
    Chat: 'Chat completions.',
    Images: 'Image generation.',
    Moderations: 'Moderation.',
    Models: 'The catalogue.',
    MCP: 'The gateway as an MCP server.',
    Operation: 'Health and description.',
  },
  operations: [...operations, ...mcp],
} as const satisfies Listener;

export type GatewayId = (typeof gateway.operations)[number]['id'];
