type Level = 'minimal' | 'low' | 'medium' | 'high';

/** Tokens to think with on Gemini 2.5: what Google's own OpenAI-compatible endpoint sets. */
const BUDGETS: Readonly<Record<Level, number>> = { minimal: 1024, low: 1024, medium: 8192, high: 24_576 };

const LEVELS: ReadonlyMap<string, Level> = new Map([
  ['minimal', 'minimal'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
  ['max', 'high'],
]);

/** The least that a 2.5 Pro model thinks: it cannot be told not to. */
const LEAST_PRO_BUDGET = 128;

/**
 * `thinkingConfig` for a `reasoning_effort`; undefined when the caller named none that is known, or the model does not think.
 *
 * | effort     | 3 and later | 3 Pro    | 2.5    | 2.5 Pro |
 * |------------|-------------|----------|--------|---------|
 * | none       | `minimal`   | `low`    | 0      | 128     |
 * | minimal    | `minimal`   | `low`    | 1,024  | 1,024   |
 * | low        | `low`       | `low`    | 1,024  | 1,024   |
 * | medium     | `medium`    | `medium` | 8,192  | 8,192   |
 * | high, more | `high`      | `high`   | 24,576 | 24,576  |
 *
 * Thoughts are asked for with every effort but `none`.
 */
export function thinkingConfig(
  externalId: string,
  effort: string | null | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const setting = thinkingSetting(externalId);
  const level = effort === 'none' ? 'minimal' : LEVELS.get(effort ?? '');
  if (setting === 'none' || level === undefined) return undefined;
  const pro = isPro(externalId);
  const includeThoughts = effort !== 'none';
  if (setting === 'level') return { thinkingLevel: pro && level === 'minimal' ? 'low' : level, includeThoughts };
  if (includeThoughts) return { thinkingBudget: BUDGETS[level], includeThoughts };
  return { thinkingBudget: pro ? LEAST_PRO_BUDGET : 0, includeThoughts };
}

// Capabilities of Gemini models of different generations follow from the name alone.

/** `gemini-2.5-flash` states 2.5, `gemini-3-pro-preview` 3; a moving name such as `gemini-flash-latest` states nothing. */
const STATED = /^(?:models\/)?gemini-(\d+)(?:\.(\d+))?(?!\d)/;
const GEMINI = /^(?:models\/)?gemini-/;

/** Hundreds are the major number: 205 for 2.5. Undefined: the name states none, so it is taken for a current model. */
function statedVersion(externalId: string): number | undefined {
  const [, major, minor] = STATED.exec(externalId) ?? [];
  return major === undefined ? undefined : Number(major) * 100 + Number(minor ?? 0);
}

const isSince = (externalId: string, version: number): boolean => (statedVersion(externalId) ?? version) >= version;

/** Gemini 3 and later refuse an earlier function call that comes back without its thought signature. */
export const requiresSignatures = (externalId: string): boolean => GEMINI.test(externalId) && isSince(externalId, 300);

/** The provider itself fetches a public https address that a part names; not for Gemini 2.0 and older. */
export const fetchesLinks = (externalId: string): boolean => isSince(externalId, 205);

/** A function's result may hold images and documents. */
export const takesMediaResults = (externalId: string): boolean => isSince(externalId, 300);

/** An answer can have a schema while functions may be called. */
export const formsAnswersWithTools = (externalId: string): boolean => isSince(externalId, 300);

/** Web searches are charged one by one; before Gemini 3 once for an answer. */
export const countsSearches = (externalId: string): boolean => isSince(externalId, 300);

/** Way to set the amount of thinking: a level since Gemini 3, a number of tokens in 2.5, none before. */
function thinkingSetting(externalId: string): 'level' | 'budget' | 'none' {
  if (isSince(externalId, 300)) return 'level';
  return isSince(externalId, 205) ? 'budget' : 'none';
}

/** Pro models think always, and know no level below `low`. */
const isPro = (externalId: string): boolean => /-pro(?![a-z])/.test(externalId);
