import { COMMON, json, type Listener, type Operation, type QueryParameter } from './operation.ts';

const flag = (description: string): QueryParameter => ({ description, type: 'boolean' });

const LIST_QUERY = {
  include_deactivated: flag('Deactivated models and mappings too.'),
  exclude_deprecated: flag('Without what is deprecated.'),
  no_training: flag('Only mappings of providers that do not train on API data, as far as that is known.'),
  mapped: flag('One entry for each mapping, under `provider/model`.'),
  include_restricted: flag('With a key: also what this key may not use.'),
};

const CALL_HEADERS = {
  'x-request-id': 'Of the caller; answered as `x-client-request-id`.',
  'x-no-cache': '`true`: the answer comes from a provider and is not kept.',
  'x-no-fallback': '`true`: one attempt only.',
};

const CALL_ERRORS = [400, 401, 402, 403, 404, 413, 415, 429, 502, 503, 504];

const operations: readonly Operation[] = [
  {
    method: 'post',
    path: '/v1/chat/completions',
    id: 'createChatCompletion',
    tag: 'Chat',
    summary: 'Complete a chat',
    description:
      "OpenAI's request and answer, with usage, cost and metadata of the gateway. With `stream` the answer is server-sent events, each a `ChatChunk`, then `[DONE]`; a failure after the first byte is told in band.",
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
      "OpenAI's request and answer. With `stream` the answer is server-sent events, each an `ImageEvent`: partial images where the provider gives them, then each whole image.",
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
    id: 'getModel',
    tag: 'Models',
    summary: 'One model',
    description: 'By canonical id, alias or `provider/model`, with `/` as it is or percent-encoded.',
    key: 'optional',
    query: LIST_QUERY,
    answer: json('Model', 'The model.'),
    errors: [400, 401, 404, 429, 503],
  },
];

export const gateway: Listener = {
  title: 'Portcullis gateway',
  description: 'One OpenAI-compatible API in front of many providers. A compiled policy decides every call.',
  tags: {
    Chat: 'Chat completions.',
    Images: 'Image generation.',
    Moderations: 'Moderation.',
    Models: 'The catalogue.',
    Operation: 'Health and description.',
  },
  operations: [...operations, ...COMMON],
};
