import { isRecord } from '../wire/json.ts';
import type { Turn } from './messages.ts';
import type { ModelRules } from './model.ts';

/** Tokens to think with, for models that want a number. Beyond 32k, Anthropic says, more gains little. */
const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 2048],
  ['medium', 8192],
  ['high', 16_384],
  ['xhigh', 32_768],
  ['max', 32_768],
]);

const MIN_BUDGET = 1024;

export interface ThinkingPlan {
  /** The request's `thinking`; absent: the model's default. */
  readonly thinking?: Readonly<Record<string, unknown>>;
  /** For `output_config`. */
  readonly effort?: string;
  /** With a budget: then no call of a tool can be forced. */
  readonly manual: boolean;
  /** Asked for, in either way: then the sampling parameters are bound. */
  readonly on: boolean;
}

const LEFT_TO_MODEL: ThinkingPlan = { manual: false, on: false };

export interface ThinkingRequest {
  /** The caller's own `thinking`, in the API's form: passed on as it is. */
  readonly own: unknown;
  /** The caller's `reasoning_effort`. */
  readonly effort: string | null | undefined;
  /** The mapping's: an effort is a wish, and idle where the model does not reason. */
  readonly reasons: boolean;
  readonly maxTokens: number;
  /** False where the API would refuse a budget: see `allowsManualThinking`. */
  readonly manualAllowed: boolean;
}

/**
 * With a budget the API answers 400 when the last assistant turn holds tool calls and does not begin with its thoughts (an SDK
 * dropped them), and when that turn stands last, to be continued. Such a request goes without thinking rather than fail.
 */
export function allowsManualThinking(turns: readonly Turn[]): boolean {
  const position = turns.findLastIndex(({ role }) => role === 'assistant');
  const content = turns[position]?.content ?? [];
  if (position !== -1 && position === turns.length - 1) return false;
  const [first] = content;
  const begins = first?.type === 'thinking' || first?.type === 'redacted_thinking';
  return begins || content.every(({ type }) => type !== 'tool_use');
}

/** Whether an effort is one that the API, or a budget, can say. */
export const isKnownEffort = (effort: string): boolean => effort === 'none' || BUDGETS.has(effort);

/** How the model is to think; by an effort that is known. */
export function planThinking(request: ThinkingRequest, rules: ModelRules): ThinkingPlan {
  const { own, effort, reasons } = request;
  const asked = effort == null || !reasons || rules.thinking === 'none' ? undefined : effort;
  if (isRecord(own)) return ownPlan(own, asked, request, rules);
  if (asked === undefined) return LEFT_TO_MODEL;
  return rules.thinking === 'adaptive' ? adaptivePlan(asked, rules) : budgetPlan(asked, request);
}

function ownPlan(
  own: Readonly<Record<string, unknown>>,
  effort: string | undefined,
  { manualAllowed }: ThinkingRequest,
  rules: ModelRules,
): ThinkingPlan {
  const manual = own.type === 'enabled';
  if (manual && !manualAllowed) return LEFT_TO_MODEL;
  const plan = { thinking: own, manual, on: own.type !== 'disabled' };
  const named = effort !== undefined && effort !== 'none' && rules.thinking === 'adaptive';
  return named ? { ...plan, effort: effortLevel(effort, rules) } : plan;
}

function adaptivePlan(effort: string, rules: ModelRules): ThinkingPlan {
  if (effort !== 'none') {
    // Without `summarized`, newer models send their thoughts empty.
    const thinking = { type: 'adaptive', display: 'summarized' };
    return { thinking, effort: effortLevel(effort, rules), manual: false, on: true };
  }
  const { thinkingOff } = rules;
  if (thinkingOff === 'omit') return LEFT_TO_MODEL;
  // The nearest to nothing that a model which always thinks can do.
  if (thinkingOff === 'never') return { effort: 'low', manual: false, on: true };
  return { thinking: { type: thinkingOff }, manual: false, on: false };
}

/**
 * The budget shrinks to three quarters of `max_tokens`, which counts thoughts too, as OpenAI's limit does. The limit itself is
 * never raised: what the call may cost at most was reserved by it.
 */
function budgetPlan(effort: string, { maxTokens, manualAllowed }: ThinkingRequest): ThinkingPlan {
  const budget = Math.min(BUDGETS.get(effort) ?? 0, Math.floor(maxTokens * 0.75));
  if (budget < MIN_BUDGET || !manualAllowed) return LEFT_TO_MODEL;
  return { thinking: { type: 'enabled', budget_tokens: budget }, manual: true, on: true };
}

/** `low medium high max`, and `xhigh` where the model has it. */
function effortLevel(effort: string, { xhighEffort }: ModelRules): string {
  if (effort === 'minimal') return 'low';
  return effort === 'xhigh' && !xhighEffort ? 'high' : effort;
}
