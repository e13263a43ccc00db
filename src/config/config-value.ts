import { withoutFinalSlashes } from '../lib/final-slashes.ts';

/** A variable is wrong. The message is one line that names it and says what it must be, never what a secret held. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The items of a comma list without the blanks around them; none when the variable is unset. */
export const readList = (text: string | undefined): string[] => text?.split(',').map((item) => item.trim()) ?? [];

/** A URL without a final slash. @throws ConfigError */
export function readUrl(name: string, text: string): string {
  if (!URL.canParse(text)) throw new ConfigError(`${name} must be a URL.`);
  return withoutFinalSlashes(new URL(text).href);
}

/** What `parse` returns; what it throws becomes a ConfigError that names the variable. */
export function explained<T>(name: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new ConfigError(`${name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
