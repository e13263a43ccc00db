import { entryOf } from '../lib/text.ts';
import { ConfigError, readList } from './config-value.ts';

/**
 * Fields by which some server takes another model, a longer answer or a higher price than the gateway knows of: to let one through
 * would open a way around rules and spend caps. Those that the gateway itself writes are here too.
 */
const NEVER_NAMED: ReadonlySet<string> = new Set([
  'api_base',
  'base_url',
  'best_of',
  'container',
  'content_policy_fallbacks',
  'context_window_fallbacks',
  'extra_body',
  'fallbacks',
  'generationConfig',
  'inference_geo',
  'max_new_tokens',
  'max_output_tokens',
  'mcp_servers',
  'messages',
  'min_tokens',
  'model',
  'models',
  'n_predict',
  'num_predict',
  'num_return_sequences',
  'options',
  'plugins',
  'preset',
  'provider',
  'route',
  'search_parameters',
  'speed',
  'stream',
]);

/** Why a field may not be let through to a provider; undefined: it may. */
export const fieldFault = (name: string): string | undefined =>
  NEVER_NAMED.has(name) ? `\`${name}\` can choose another model, a longer answer or a higher price.` : undefined;

/** The fields that a variable names. Its shape has been checked. @throws ConfigError for one that cannot be let through */
export function readRequestFields(
  variable: string,
  variables: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const names = readList(entryOf(variables, variable));
  for (const name of names) {
    const fault = fieldFault(name);
    if (fault !== undefined) throw new ConfigError(`${variable}: ${fault}`);
  }
  return names;
}
