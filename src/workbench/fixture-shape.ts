import { checkShape, type Explanation } from '../domain/check-shape.ts';
import { ApiError } from '../domain/errors.ts';
import type { Validator } from '../generated/validators.js';
import { FixtureFault, type Path, type SourceDocument } from './fixture-source.ts';

const EXPLANATIONS: readonly Explanation[] = [
  {
    at: /\/deny$/,
    must: 'must be `any`, a scope and a rule type such as `member deny_models`, or a message that begins with `Access denied: `',
  },
  { at: /\/(allow|deny)_models\/\d+$/, must: 'must be a model id, or a prefix of one that ends in its only *' },
  { at: /\/(allow|deny)_providers\/\d+$/, must: 'must be a provider id' },
];

/** The value of a document, or a part of it, as the validator says it is. @throws FixtureFault at the first wrong place. */
export function checkedShape<T>(validator: Validator<T>, document: SourceDocument): T {
  if (typeof document.value !== 'object' || document.value === null || Array.isArray(document.value)) {
    throw new FixtureFault(document.placeOf([]), 'A map is expected here.');
  }
  return locating(document, [], () => checkShape(validator, document.value, EXPLANATIONS));
}

/**
 * What `read` returns. What it finds wrong (an ApiError that names a JSON pointer) becomes a fault of the document.
 * @param below where in the document the pointer begins @param rename makes of the pointer the one in the document
 */
export function locating<T>(
  document: SourceDocument,
  below: Path,
  read: () => T,
  rename: (pointer: string) => string = (pointer) => pointer,
): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const pointer = error.param ?? '';
    const path = rename(pointer)
      .split('/')
      .slice(1)
      .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
    const message = pointer === '' ? error.message : error.message.replace(pointer, rename(pointer));
    throw new FixtureFault(document.placeOf([...below, ...path]), message);
  }
}
