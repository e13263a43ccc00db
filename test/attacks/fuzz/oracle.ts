// What an upstream may be sent: tables of its own, so that a fault in the product's tables shows.
import type { IncomingHttpHeaders } from 'node:http';
import type { WireFormat } from '../../../src/domain/provider.ts';
import { isRecord, record } from '../../../src/providers/wire/fields.ts';
import { type Called, type KeySpec, mayCall } from './keys.ts';
import { servedBy } from './served.ts';

const words = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

const OPENAI = words(`
  model messages audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities
  moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
  top_logprobs top_p user verbosity web_search_options`);

/** What vLLM and its like document. */
const COMPATIBLE = words(`
  add_generation_prompt cache_prompt chat_template_kwargs continue_final_message enable_thinking grammar guided_choice guided_grammar
  guided_json guided_regex include_reasoning include_stop_str_in_output keep_alive min_p reasoning reasoning_format repeat_last_n
  repeat_penalty repetition_penalty skip_special_tokens spaces_between_special_tokens stop_token_ids structured_outputs thinking
  thinking_budget top_a top_k typical_p`);

/** What the operator lets through to one of them. */
export const NAMED_FIELD = 'x_trace';
export const NAMED_AT = 'alpha';

const ANTHROPIC = words(`
  model max_tokens system messages tools tool_choice thinking output_config temperature top_p top_k stop_sequences metadata service_tier
  cache_control context_management stream`);
const GOOGLE = words('contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent');
const GENERATION_CONFIG = words(`
  temperature topP topK maxOutputTokens stopSequences candidateCount seed presencePenalty frequencyPenalty responseLogprobs logprobs
  responseModalities thinkingConfig imageConfig mediaResolution responseMimeType responseJsonSchema`);
const IMAGE = words(`
  prompt model n size quality background moderation output_compression output_format response_format style user aspect_ratio stream
  partial_images`);
const MODERATION = words('input model');

/** Fields that name a model or raise the bill, wherever they stand. */
const DANGEROUS = words(`
  model models fallbacks fallback_models context_window_fallbacks content_policy_fallbacks extra_body best_of n_predict num_predict
  max_new_tokens max_output_tokens max_length min_tokens num_return_sequences plugins preset route engine provider options api_base
  base_url mcp_servers container speed inference_geo search_parameters litellm_params generationConfig generation_config __proto__
  constructor`);

/** What callers may fill as they like: schemas, labels, arguments, and what a provider gets back of its own. */
const FREE = words(`
  parameters schema metadata logit_bias chat_template_kwargs guided_json structured_outputs extra_content annotations input_schema
  parametersJsonSchema responseJsonSchema args input response json_schema properties moderation ${NAMED_FIELD}`);

const TIERS: readonly unknown[] = [
  undefined,
  null,
  '',
  'auto',
  'default',
  'flex',
  'on_demand',
  'standard',
  'standard_only',
];

export interface UpstreamRequest {
  readonly provider: string;
  readonly wire: WireFormat;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** Whose call it is, if that is known. */
export interface Caller {
  readonly key: KeySpec;
  readonly address: string | undefined;
}

const actionOf = (path: string): Called['action'] =>
  path.endsWith('/images/generations') ? 'image' : path.endsWith('/moderations') ? 'moderation' : 'chat';

/** The model that is asked for: by the body, with Google by the path. */
export const modelOf = ({ wire, path, body }: UpstreamRequest): unknown =>
  wire === 'google'
    ? decodeURIComponent(
        /\/models\/([^/:?]+):(?:streamGenerateContent\?alt=sse|generateContent)$/.exec(path)?.[1] ?? '',
      )
    : record(body).model;

function topLevel({ provider, wire, path }: UpstreamRequest): (field: string) => boolean {
  if (wire === 'anthropic') return (field) => ANTHROPIC.has(field);
  if (wire === 'google') return (field) => GOOGLE.has(field);
  const action = actionOf(path);
  if (action !== 'chat') return (field) => (action === 'image' ? IMAGE : MODERATION).has(field);
  return (field) =>
    OPENAI.has(field) ||
    (provider !== 'openai' && COMPATIBLE.has(field)) ||
    (provider === NAMED_AT && field === NAMED_FIELD);
}

/** Where a dangerous field stands below the top, if anywhere. */
function dangerIn(value: unknown, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, inner] of Object.entries(value)) {
    if (path !== '' && !Array.isArray(value) && DANGEROUS.has(name)) return `${path}/${name}`;
    const found = FREE.has(name) ? undefined : dangerIn(inner, `${path}/${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function toolFault({ wire }: UpstreamRequest, tool: unknown): string | undefined {
  const { type } = record(tool);
  if (wire === 'google') {
    const kinds = Object.keys(record(tool));
    return kinds.every((kind) => kind === 'functionDeclarations' || kind === 'googleSearch') ? undefined : kinds.join();
  }
  if (wire === 'anthropic') {
    return type === undefined || /^web_search_(20250305|20260209)$/.test(String(type)) ? undefined : String(type);
  }
  return type === 'function' || type === 'custom' ? undefined : String(type);
}

function* fieldFaults(request: UpstreamRequest): Generator<string> {
  const { body, wire } = request;
  if (!isRecord(body)) {
    yield 'the body is no JSON object';
    return;
  }
  const takes = topLevel(request);
  for (const field of Object.keys(body)) if (!takes(field)) yield `the field ${field.slice(0, 100)}`;
  if (wire === 'google') {
    for (const field of Object.keys(record(body.generationConfig))) {
      if (!GENERATION_CONFIG.has(field)) yield `the field generationConfig/${field}`;
    }
  }
  const danger = dangerIn(wire === 'google' ? { ...body, generationConfig: undefined } : body);
  if (danger !== undefined) yield `the field ${danger}`;
  for (const tool of Array.isArray(body.tools) ? body.tools : []) {
    const fault = toolFault(request, tool);
    if (fault !== undefined) yield `a tool of type ${fault}`;
  }
  if (!TIERS.includes(body.service_tier)) yield `service_tier ${body.service_tier}`;
}

/** The most tokens that the upstream is asked for. */
export function maximumOf({ wire, body }: UpstreamRequest): number | undefined {
  const fields = record(body);
  const most =
    wire === 'google'
      ? record(fields.generationConfig).maxOutputTokens
      : (fields.max_completion_tokens ?? fields.max_tokens);
  return typeof most === 'number' ? most : undefined;
}

/** What is wrong with a request that an upstream got. @param caller undefined: whose it is cannot be told */
export function* faultsOf(request: UpstreamRequest, caller: Caller | undefined): Generator<string> {
  const model = modelOf(request);
  const served = typeof model === 'string' ? servedBy(request.provider, model) : undefined;
  const isFixed = !request.provider.startsWith('own');
  if (served === undefined && isFixed) yield `the model ${String(model).slice(0, 100)}, which it does not serve`;
  yield* fieldFaults(request);
  for (const name of ['cookie', 'x-forwarded-for', 'x-fuzz', 'forwarded', 'x-api-version']) {
    if (request.headers[name] !== undefined) yield `the caller's header ${name}`;
  }
  if (caller === undefined || served === undefined) return;
  const action = actionOf(request.path);
  if (!mayCall(caller.key, { ...served, action, address: caller.address })) {
    yield `${served.provider}/${served.model} for the key "${caller.key.name}" from ${caller.address ?? 'nowhere'}`;
  }
  const { usageLimit, periodUsageLimit } = caller.key.limits ?? {};
  const isCapped = usageLimit !== undefined || periodUsageLimit !== undefined || caller.key.hasBudget === true;
  const draws = JSON.stringify(record(record(request.body).generationConfig).responseModalities) === '["IMAGE"]';
  if (isCapped && action === 'chat' && !draws && !served.free && maximumOf(request) === undefined)
    yield 'no maximum of output for a capped key';
}
