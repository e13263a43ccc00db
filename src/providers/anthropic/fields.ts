import type { Mapping } from '../../domain/model.ts';
import type { ChatRequest } from '../../generated/types.ts';
import type { Adapter, Unsupported } from '../wire/adapter.ts';
import { record } from '../wire/json.ts';
import {
  anything,
  droppedBy,
  type Extensions,
  type FitCall,
  listOf,
  objectOf,
  openAiOnly,
  type RequestTable,
  single,
  unsupportedBy,
} from '../wire/request-fields.ts';
import { type ModelRules, modelRules } from './model.ts';
import { isKnownEffort, planThinking } from './thinking.ts';

type Fields = Readonly<Record<string, unknown>>;

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

/** What the API has no field for. */
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

/** What of a request the Messages API cannot take. */
export const unsupported: Adapter['unsupported'] = (call) => unsupportedBy(call, TABLE);

/** Fields that the API takes in part: it refuses blank stop texts, and temperatures above 1. */
function reduced({ request: { stop, temperature } }: FitCall): readonly string[] {
  const isBlank = [stop ?? []].flat().some((text) => text.trim() === '');
  return [...(isBlank ? ['stop'] : []), ...((temperature ?? 0) > 1 ? ['temperature'] : [])];
}

export const dropped: Adapter['dropped'] = (call) => [...new Set([...droppedBy(call, TABLE), ...reduced(call)])];

/** What a request says in the API's own words. */
export interface AnthropicOptions {
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
