import type { Adapter } from './adapter.ts';
import { record } from './json.ts';
import {
  anything,
  type Extensions,
  listOf,
  objectOf,
  type RequestTable,
  single,
  unsupportedBy,
} from './request-fields.ts';

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

const TABLE: RequestTable = { extensions: EXTENSIONS, searchTools: WEB_SEARCH };

/** What of a request the Messages API cannot take. */
export const unsupported: Adapter['unsupported'] = (call) => unsupportedBy(call, TABLE);

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
