import type { ChatRequest, ResponseFormat } from '../../generated/types.ts';
import { entryOf } from '../../lib/text.ts';
import type { OutboundRequest } from '../../net/transport.ts';
import type { Adapter, ChatCall, Endpoint, Unsupported } from '../wire/adapter.ts';
import {
  droppedBy,
  type Extensions,
  type Fields,
  type FitCall,
  isRecord,
  listOf,
  namedFields,
  objectOf,
  openAiOnly,
  type RequestTable,
  record,
  single,
  unsupportedBy,
} from '../wire/fields.ts';
import { toConversation } from './contents.ts';
import { formsAnswersWithTools, thinkingConfig } from './thinking.ts';
import { toGoogleSchema, toToolFields } from './tools.ts';

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

const snakeCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Fields of Google's own that a caller may set, in either spelling; Google reads both. */
const inBothSpellings = (...names: string[]) => names.map((name) => ({ name, snake: snakeCase(name) }));
const TOP_LEVEL = inBothSpellings('safetySettings', 'cachedContent');
const GENERATION = inBothSpellings('thinkingConfig', 'imageConfig', 'mediaResolution');

/** Each field under both of its spellings. */
const bothSpellings = (fields: Extensions): Extensions =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, takes]) => [
      [name, takes],
      [snakeCase(name), takes],
    ]),
  );

const BODY = bothSpellings({
  safetySettings: listOf(objectOf({ category: single, threshold: single, method: single })),
  cachedContent: single,
});

const GOOGLE = objectOf({
  ...BODY,
  ...bothSpellings({
    thinkingConfig: objectOf(bothSpellings({ thinkingBudget: single, thinkingLevel: single, includeThoughts: single })),
    imageConfig: objectOf(bothSpellings({ aspectRatio: single, imageSize: single })),
    mediaResolution: single,
  }),
});

const EXTENSIONS: Extensions = { ...BODY, top_k: single, google: GOOGLE, extra_body: objectOf({ google: GOOGLE }) };

/** Fields that Gemini does not have. */
const ABSENT = [
  'audio',
  'function_call',
  'functions',
  'logit_bias',
  'metadata',
  'moderation',
  'parallel_tool_calls',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
  'store',
  'user',
  'verbosity',
];

/** Google's limit. */
const MAX_STOPS = 5;

function refuses({ request, mapping }: FitCall): Unsupported | undefined {
  const { tools, stop, modalities, response_format: format } = request;
  if (Array.isArray(stop) && stop.length > MAX_STOPS) {
    return { param: '/stop', message: `The provider takes at most ${MAX_STOPS} stop texts.` };
  }
  if (modalities?.some((modality) => modality !== 'text' && modality !== 'image') === true) {
    return { param: '/modalities', message: 'The provider answers with text and images only.' };
  }
  if (format?.type === 'json_schema' && (tools ?? []).length > 0 && !formsAnswersWithTools(mapping.externalId)) {
    return { param: '/response_format', message: 'The model does not take tools and a schema for its answer at once.' };
  }
  return openAiOnly(request);
}

const TABLE: RequestTable = { extensions: EXTENSIONS, cannot: () => ABSENT, refuses };

/** Parts of a request that Gemini cannot take. */
export const unsupported: Adapter['unsupported'] = (call) => unsupportedBy(call, TABLE);

export const dropped: Adapter['dropped'] = (call) => droppedBy(call, TABLE);

interface GoogleOptions {
  /** For the body. */
  readonly body: Fields;
  /** For its `generationConfig`; they win over what other fields of the request ask for. */
  readonly generation: Fields;
}

type Names = typeof TOP_LEVEL;

/** Value from the first source that sets a field; undefined: none does. Runs for each call with a limit, so it allocates nothing. */
function chosen({ name, snake }: Names[number], sources: readonly Fields[]): unknown {
  for (const source of sources) {
    const value = entryOf(source, name) ?? entryOf(source, snake);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

function pick(names: Names, sources: readonly Fields[]): Fields {
  const picked: [name: string, value: unknown][] = [];
  for (const each of names) {
    const value = chosen(each, sources);
    if (value !== undefined) picked.push([each.name, value]);
  }
  return Object.fromEntries(picked);
}

/**
 * Options of a request in Google's own words: in an object `google`, as Google's OpenAI-compatible endpoint has it, also inside
 * `extra_body`; `safetySettings` and `cachedContent` stand on their own as well. A cache belongs to the account that made it;
 * the owner of the call's credential is not known here, so the cache's name is passed on with the service's too.
 */
export function googleOptions(request: object): GoogleOptions {
  const fields = record(request);
  const own = [fields.google, record(fields.extra_body).google].filter(isRecord);
  return { body: pick(TOP_LEVEL, [...own, fields]), generation: pick(GENERATION, own) };
}

const MODALITIES: ReadonlyMap<string, string> = new Map([
  ['text', 'TEXT'],
  ['image', 'IMAGE'],
]);

function stopSequences(stop: ChatRequest['stop']): string[] | undefined {
  const stops = typeof stop === 'string' ? [stop] : (stop ?? []);
  return stops.length === 0 ? undefined : stops;
}

function responseModalities(modalities: ChatRequest['modalities']): string[] | undefined {
  if (!Array.isArray(modalities) || modalities.length === 0) return undefined;
  return modalities.flatMap((modality) => MODALITIES.get(modality) ?? []);
}

function formatFields(format: ResponseFormat | undefined): Fields {
  switch (format?.type) {
    case 'json_object':
      return { responseMimeType: 'application/json' };
    case 'json_schema': {
      const schema = format?.json_schema?.schema;
      const json = { responseMimeType: 'application/json' };
      return isRecord(schema) ? { ...json, responseJsonSchema: toGoogleSchema(schema) } : json;
    }
    default:
      return {};
  }
}

/** Fields that are null are absent. */
function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}

/**
 * `generationConfig`. The maximum of tokens is the gateway's where it set one, else the caller's. What Gemini has no word for
 * (options.ts) is left out.
 */
function toGenerationConfig(call: ChatCall): Fields {
  const { request, mapping } = call;
  return present({
    temperature: request.temperature,
    topP: request.top_p,
    topK: record(request).top_k,
    maxOutputTokens: call.maxOutputTokens ?? request.max_completion_tokens ?? request.max_tokens,
    stopSequences: stopSequences(request.stop),
    candidateCount: request.n,
    seed: request.seed,
    presencePenalty: request.presence_penalty,
    frequencyPenalty: request.frequency_penalty,
    responseLogprobs: request.logprobs === true ? true : undefined,
    logprobs: request.logprobs === true ? request.top_logprobs : undefined,
    responseModalities: responseModalities(request.modalities),
    thinkingConfig: thinkingConfig(mapping.externalId, request.reasoning_effort),
    ...formatFields(request.response_format),
  });
}
