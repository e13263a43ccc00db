import { validateSubjectRules } from '../generated/validators.js';
import { PolicyFailure } from './policy-failure.ts';

/**
 * Throws PolicyFailure unless a stored text is well-formed `SubjectRules`. A deny list of the wrong shape would match nothing
 * in Rego, and so let everything through: what cannot be read must deny.
 */
export function assertSubjectRules(text: string): void {
  let rules: unknown;
  try {
    rules = JSON.parse(text);
  } catch (cause) {
    throw new PolicyFailure('The stored rules of a subject are not JSON.', cause);
  }
  if (!validateSubjectRules(rules)) {
    throw new PolicyFailure('The stored rules of a subject are malformed.', validateSubjectRules.errors?.[0]);
  }
}
