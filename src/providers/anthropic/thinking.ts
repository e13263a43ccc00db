import { isRecord } from '../wire/fields.ts';
import type { Turn } from './messages.ts';

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

interface ThinkingPlan {
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

interface ThinkingRequest {
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

/** Plans how the model is to think; by an effort that is known. */
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

/**
 * Parts of the Messages API that a Claude model takes. The API refuses the others with 400, and its catalogue has no field for
 * most of this, so it follows from the model's version, as Anthropic's migration guides of 2026 state it.
 */
export interface ModelRules {
  /** `budget`: up to 4.5, by `budget_tokens`. `adaptive`: from 4.6, by an effort. `none`: before 3.7. */
  readonly thinking: 'none' | 'budget' | 'adaptive';
  /** Way to turn thinking off: by omission, by this type, or not at all. */
  readonly thinkingOff: 'omit' | 'disabled' | 'between_tools' | 'never';
  /** The effort between `high` and `max`, from 4.7. */
  readonly xhighEffort: boolean;
  /** `one`: not temperature and top_p together. */
  readonly sampling: 'all' | 'one' | 'none';
  /** Takes a tool choice that forces a call. */
  readonly forcedTools: boolean;
  /** Takes `output_config.format` and strict tools, from 4.5. */
  readonly structuredOutputs: boolean;
  /** Goes on with an assistant message that stands last, before 4.6. */
  readonly prefill: boolean;
}

/** A model of someone else behind the same API: what the API's first versions knew. */
const NOT_CLAUDE: ModelRules = {
  thinking: 'budget',
  thinkingOff: 'omit',
  xhighEffort: false,
  sampling: 'all',
  forcedTools: true,
  structuredOutputs: false,
  prefill: true,
};

/** Family, major and minor version, in either order of old and new names; a date is no minor version. */
const VERSION = /claude-(?:(?<family>[a-z]+)-)?(?<major>\d{1,2})(?:[-.](?<minor>\d{1,2}))?(?!\d)/;

/** The rules of the model with this id of the provider's. A Claude without a version has those of the newest. */
export function modelRules(externalId: string): ModelRules {
  const id = externalId.toLowerCase();
  if (!id.includes('claude')) return NOT_CLAUDE;
  const { family = '', major, minor = '0' } = VERSION.exec(id)?.groups ?? {};
  const version = major === undefined ? Number.POSITIVE_INFINITY : Number(major) * 100 + Number(minor);
  return {
    thinking: thinkingOf(version),
    thinkingOff: thinkingOffOf(family, version),
    xhighEffort: version >= 407,
    sampling: samplingOf(version),
    forcedTools: forcesTools(family, version),
    structuredOutputs: version >= 405,
    prefill: version < 406,
  };
}

function thinkingOf(version: number): ModelRules['thinking'] {
  if (version < 307) return 'none';
  return version < 406 ? 'budget' : 'adaptive';
}

/** Two families always think. */
const isFable = (family: string): boolean => family === 'fable' || family === 'mythos';

function thinkingOffOf(family: string, version: number): ModelRules['thinkingOff'] {
  if (version < 500) return 'omit';
  if (isFable(family) || version === Number.POSITIVE_INFINITY) return 'never';
  if (version < 505 || family === 'haiku') return 'disabled';
  return family === 'sonnet' ? 'between_tools' : 'never';
}

function samplingOf(version: number): ModelRules['sampling'] {
  if (version < 401) return 'all';
  return version < 407 ? 'one' : 'none';
}

function forcesTools(family: string, version: number): boolean {
  if (isFable(family)) return version < 501;
  return version < 505 || family === 'haiku';
}
