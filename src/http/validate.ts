import { invalidRequest } from '../domain/errors.ts';
import type { Validator } from '../generated/validators.js';

/** Step 7 of the journey: unknown JSON becomes typed, or 400 whose `param` is the JSON pointer of the first fault. */
export function validate<T>(validator: Validator<T>, value: unknown): T {
  if (validator(value)) return value;
  const [fault] = validator.errors ?? [];
  const at = fault?.instancePath ?? '';
  const named = faultyProperty(fault?.params);
  const pointer = named === undefined ? at : `${at}/${named.replaceAll('~', '~0').replaceAll('/', '~1')}`;
  throw invalidRequest(
    `${pointer === '' ? 'The request body' : pointer} ${fault?.message ?? 'is not valid'}.`,
    pointer,
  );
}

/** The property that is missing or unknown: the fault is there, not in the object around it. */
function faultyProperty(params: Record<string, unknown> | undefined): string | undefined {
  for (const name of ['missingProperty', 'additionalProperty']) {
    const value = params?.[name];
    if (typeof value === 'string') return value;
  }
  return undefined;
}
