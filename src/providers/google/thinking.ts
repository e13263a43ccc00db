import { isPro, thinkingSetting } from './model.ts';

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
