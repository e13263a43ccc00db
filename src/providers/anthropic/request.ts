import { createHash } from 'node:crypto';
import type { Mapping } from '../../domain/model.ts';
import type { ChatRequest } from '../../generated/types.ts';
import type { Adapter, ChatCall, Unsupported } from '../wire/adapter.ts';
import {
  anything,
  droppedBy,
  type Extensions,
  type Fields,
  type FitCall,
  listOf,
  namedFields,
  objectOf,
  openAiOnly,
  type RequestTable,
  record,
  single,
  unsupportedBy,
} from '../wire/fields.ts';
import { notTakenByProvider } from '../wire/upstream-error.ts';
import { conversation } from './messages.ts';
import { allowsManualThinking, isKnownEffort, type ModelRules, modelRules, planThinking } from './thinking.ts';
import { answerFormat, toolFields } from './tools.ts';

/** For a mapping whose largest output is unknown: every model of the API takes it. */
const DEFAULT_MAX_TOKENS = 4096;

/**
 * The body of a Messages request. What the API has no field for (fields.ts) is left out: it refuses fields that it does
 * not know. @throws UpstreamError `rejected` for content that it does not take
 */
export function messagesBody(call: ChatCall): Fields {
  const { request, mapping } = call;
  const own = anthropicOptions(request);
  const rules = modelRules(mapping.externalId);
  const { system, turns } = conversation(request.messages);
  if (!rules.prefill && turns.at(-1)?.role === 'assistant') {
    throw notTakenByProvider('The model cannot continue an assistant message: the last message must be another.');
  }
  const { format, tool: answerTool, instruction } = answerFormat(request.response_format, rules);
  const maxTokens = maxTokensOf(call);
  const plan = planThinking(
    {
      own: own.thinking,
      effort: request.reasoning_effort,
      reasons: mapping.reasoning,
      maxTokens,
      // The form of an answer is a promise and thinking a wish: a forced call and a budget exclude each other.
      manualAllowed: answerTool === undefined && allowsManualThinking(turns),
    },
    rules,
  );
  const { thinking, effort } = plan;
  const outputConfig = { ...(effort === undefined ? {} : { effort }), ...(format === undefined ? {} : { format }) };
  return {
    model: mapping.externalId,
    max_tokens: maxTokens,
    ...list('system', [...system, ...instruction]),
    messages: turns,
    ...toolFields(request, rules, { answerTool, forceable: rules.forcedTools && !plan.manual }),
    ...(thinking === undefined ? {} : { thinking }),
    ...object('output_config', { ...outputConfig, ...own.outputConfig }),
    ...sampling(request, own.topK, rules, plan.on),
    ...list('stop_sequences', stopSequences(request.stop)),
    ...metadata(request.safety_identifier ?? request.user),
    ...serviceTier(request.service_tier),
    ...own.body,
    ...namedFields(request, call.namedFields),
    ...(request.stream === true ? { stream: true } : {}),
  };
}

const list = (name: string, items: readonly unknown[]): Fields => (items.length === 0 ? {} : { [name]: items });

const object = (name: string, value: Fields): Fields => (Object.keys(value).length === 0 ? {} : { [name]: value });

/** More tokens than the model can write are not asked for: the API would refuse them. */
function maxTokensOf({ request, mapping, maxOutputTokens }: ChatCall): number {
  const largest = mapping.maxOutput ?? DEFAULT_MAX_TOKENS;
  const wanted = maxOutputTokens ?? request.max_completion_tokens ?? request.max_tokens ?? largest;
  return mapping.maxOutput === undefined ? wanted : Math.min(wanted, mapping.maxOutput);
}

/**
 * Parameters that the API would refuse are left out: all of them for newer models; top_p with a temperature for others;
 * temperature, top_k and a top_p below 0.95 while thinking. A temperature above 1, the API's most, becomes 1.
 */
function sampling(
  { temperature, top_p: topP }: ChatRequest,
  topK: unknown,
  rules: ModelRules,
  thinks: boolean,
): Fields {
  if (rules.sampling === 'none') return {};
  if (thinks) return typeof topP === 'number' && topP >= 0.95 ? { top_p: topP } : {};
  const hot = typeof temperature === 'number' ? { temperature: Math.min(temperature, 1) } : {};
  const nucleus = typeof topP === 'number' ? { top_p: topP } : {};
  const top = topK == null ? {} : { top_k: topK };
  return rules.sampling === 'one' && 'temperature' in hot ? { ...hot, ...top } : { ...hot, ...nucleus, ...top };
}

/** Blanks alone are refused. */
function stopSequences(stop: ChatRequest['stop']): string[] {
  const texts = typeof stop === 'string' ? [stop] : (stop ?? []);
  return texts.filter((text) => text.trim() !== '');
}

/** The API refuses ids that look like an address or a telephone number, and long ones: those are hashed. */
function metadata(user: string | null | undefined): Fields {
  if (user == null || user === '') return {};
  const opaque = /^[A-Za-z0-9_.:-]{1,256}$/.test(user) && /[A-Za-z]/.test(user);
  return { metadata: { user_id: opaque ? user : createHash('sha256').update(user).digest('hex') } };
}

/** `default` is OpenAI's word for no priority; tiers that the API does not have are left to it. */
function serviceTier(tier: string | null | undefined): Fields {
  if (tier === 'default' || tier === 'standard_only') return { service_tier: 'standard_only' };
  return tier === 'auto' ? { service_tier: 'auto' } : {};
}

/** Features that cost nothing by themselves, by the beginning of their names. Others open tools, other models or other prices. */
const HARMLESS_BETAS = [
  'context-management-',
  'dev-full-thinking-',
  'effort-',
  'extended-cache-ttl-',
  'fine-grained-tool-streaming-',
  'interleaved-thinking-',
  'model-context-window-exceeded-',
  'output-128k-',
  'pdfs-',
  'prompt-caching-',
  'structured-outputs-',
  'token-efficient-tools-',
];

/** More features than a request can want. */
const MAX_BETAS = 20;

/** The names go into a header: nothing but names may pass. */
const isHarmlessBeta = (name: unknown): boolean =>
  typeof name === 'string' &&
  /^[A-Za-z0-9._-]{1,100}$/.test(name) &&
  HARMLESS_BETAS.some((beginning) => name.startsWith(beginning));

/** Edits that only clear the conversation. To compact it is another inference, with a bill of its own. */
const isClearingEdit = objectOf({
  type: (type) => typeof type === 'string' && type.startsWith('clear_'),
  trigger: objectOf({ type: single, value: single }),
  keep: (keep) => single(keep) || objectOf({ type: single, value: single })(keep),
  clear_at_least: objectOf({ type: single, value: single }),
  exclude_tools: listOf(single),
  clear_tool_inputs: single,
});

/** Fields of the Messages API that OpenAI does not have. `mcp_servers`, `container`, `speed` and `inference_geo` cost extra. */
const EXTENSIONS: Extensions = {
  thinking: objectOf({ type: single, budget_tokens: single, display: single }),
  top_k: single,
  output_config: objectOf({ effort: single, format: objectOf({ type: single, schema: anything }) }),
  betas: (betas) => Array.isArray(betas) && betas.length <= MAX_BETAS && betas.every(isHarmlessBeta),
  cache_control: objectOf({ type: single, ttl: single }),
  context_management: objectOf({ edits: listOf(isClearingEdit) }),
};

/**
 * The tools that run at Anthropic and are let through: each search has the mapping's `web_search` price, what it finds is prompt,
 * and no other model is called. The advisor, code execution, web fetch and MCP servers are not here.
 */
const WEB_SEARCH: ReadonlySet<string> = new Set(['web_search_20250305', 'web_search_20260209']);

/** Fields that the API does not have. */
const ABSENT = [
  'audio',
  'frequency_penalty',
  'logit_bias',
  'logprobs',
  'metadata',
  'modalities',
  'moderation',
  'n',
  'prediction',
  'presence_penalty',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'seed',
  'store',
  'top_logprobs',
  'verbosity',
  'web_search_options',
];

/** Newer models refuse sampling parameters, others take one of them, and none takes them all while it thinks. */
function cannot({ request, mapping }: FitCall): readonly string[] {
  const rules = modelRules(mapping.externalId);
  const { temperature, top_p: topP, reasoning_effort: effort } = request;
  const idleEffort = effort != null && effort !== 'none' && !mapping.reasoning ? ['reasoning_effort'] : [];
  const tier = request.service_tier === 'flex' ? ['service_tier'] : [];
  return [...ABSENT, ...idleEffort, ...tier, ...unsampled(temperature ?? undefined, topP ?? undefined)];

  function unsampled(heat: number | undefined, nucleus: number | undefined): readonly string[] {
    if (heat === undefined && nucleus === undefined && record(request).top_k === undefined) return [];
    if (rules.sampling === 'none') return ['temperature', 'top_p', 'top_k'];
    if (thinks(request, mapping, rules))
      return ['temperature', 'top_k', ...(nucleus !== undefined && nucleus < 0.95 ? ['top_p'] : [])];
    return rules.sampling === 'one' && heat !== undefined ? ['top_p'] : [];
  }
}

const thinks = (request: ChatRequest, mapping: Mapping, rules: ModelRules): boolean =>
  planThinking(
    {
      own: record(request).thinking,
      effort: request.reasoning_effort,
      reasons: mapping.reasoning,
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? mapping.maxOutput ?? Number.MAX_SAFE_INTEGER,
      manualAllowed: true,
    },
    rules,
  ).on;

const FORCED: ReadonlySet<unknown> = new Set(['required', 'function']);

function refuses({ request, mapping }: FitCall): Unsupported | undefined {
  const { tool_choice: choice, reasoning_effort: effort } = request;
  const wanted = typeof choice === 'string' ? choice : choice?.type;
  if (FORCED.has(wanted) && !modelRules(mapping.externalId).forcedTools) {
    return { param: '/tool_choice', message: 'The model cannot be made to call a tool: use `auto`.' };
  }
  return effort == null || isKnownEffort(effort)
    ? openAiOnly(request)
    : { param: '/reasoning_effort', message: 'The provider does not know this `reasoning_effort`.' };
}

const TABLE: RequestTable = { extensions: EXTENSIONS, searchTools: WEB_SEARCH, cannot, refuses };

/** Parts of a request that the Messages API cannot take. */
export const unsupported: Adapter['unsupported'] = (call) => unsupportedBy(call, TABLE);

/** Fields that the API takes in part: it refuses blank stop texts, and temperatures above 1. */
function reduced({ request: { stop, temperature } }: FitCall): readonly string[] {
  const isBlank = [stop ?? []].flat().some((text) => text.trim() === '');
  return [...(isBlank ? ['stop'] : []), ...((temperature ?? 0) > 1 ? ['temperature'] : [])];
}

export const dropped: Adapter['dropped'] = (call) => [...new Set([...droppedBy(call, TABLE), ...reduced(call)])];

/** Options of a request in the API's own words. */
interface AnthropicOptions {
  /** For the header. */
  readonly betas: readonly string[];
  readonly thinking: unknown;
  readonly topK: unknown;
  readonly outputConfig: Fields;
  /** For the body, as they are. */
  readonly body: Fields;
}

export function anthropicOptions(request: object): AnthropicOptions {
  const { betas, thinking, top_k: topK, output_config: outputConfig, ...given } = record(request);
  const own = { cache_control: given.cache_control, context_management: given.context_management };
  return {
    betas: Array.isArray(betas) ? betas.filter((name) => typeof name === 'string') : [],
    thinking,
    topK,
    outputConfig: record(outputConfig),
    body: Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined && value !== null)),
  };
}
