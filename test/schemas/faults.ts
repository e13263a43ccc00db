import type { Validator } from '../../src/lib/schemas.ts';

/** The first fault as `pointer keyword` (and the property that is missing), or null when the value is valid. */
export function faultOf<T>(validator: Validator<T>, value: unknown): string | null {
  if (validator(value)) return null;
  const [fault] = validator.errors ?? [];
  const missing = fault?.keyword === 'required' ? ` ${fault.params.missingProperty}` : '';
  return `${fault?.instancePath} ${fault?.keyword}${missing}`;
}
