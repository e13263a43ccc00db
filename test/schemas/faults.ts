import type { Validator } from '../../src/generated/validators.js';

/** The first fault as `pointer keyword`, or null when the value is valid. */
export function faultOf<T>(validator: Validator<T>, value: unknown): string | null {
  if (validator(value)) return null;
  const [fault] = validator.errors ?? [];
  return `${fault?.instancePath} ${fault?.keyword}`;
}
