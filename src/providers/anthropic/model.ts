/**
 * What a Claude model takes of the Messages API. The API refuses with 400 what a model does not take, and its catalogue has no
 * field for most of this, so it follows from the model's version, as Anthropic's migration guides of 2026 state it.
 */
export interface ModelRules {
  /** `budget`: up to 4.5, by `budget_tokens`. `adaptive`: from 4.6, by an effort. `none`: before 3.7. */
  readonly thinking: 'none' | 'budget' | 'adaptive';
  /** How thinking is left off: by saying nothing, by this type, or not at all. */
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
