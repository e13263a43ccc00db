import type { ValidationError, Validator } from '../lib/schemas.ts';
import { entryOf, hiddenCharacter } from '../lib/text.ts';
import { type FieldFault, invalidField, invalidRequest, unsupportedParameter } from './errors.ts';

/** Requirement for a place of the body, in words; `at` is matched against the JSON pointer of a fault. */
export interface Explanation {
  readonly at: RegExp;
  readonly must: FieldFault['predicate'];
}

/**
 * Checks content that people write for things that are administered: as `checkContent`, and its texts, which others read
 * elsewhere, contain no invisible character.
 * @param quotable places whose text the message may repeat; all others may contain secrets. Default: every place.
 */
export function checkShape<T>(
  validator: Validator<T>,
  body: unknown,
  explanations: readonly Explanation[] = [],
  quotable = /^/,
): T {
  checkVisible(body, '');
  return checkContent(validator, body, explanations, quotable);
}

const NOT_VISIBLE = 'control characters and characters that cannot be seen are not allowed';

/** @param what it is, as it begins a sentence @throws ApiError 400 for a text with a character that cannot be seen */
export function checkVisibleText(text: string, what: string, param: string): void {
  const hidden = hiddenCharacter(text);
  if (hidden !== undefined) throw invalidRequest(`${what} holds ${hidden}: ${NOT_VISIBLE}.`, param);
}

/** Checks every text below a place as above. Names of fields are ours, or lead to something that exists already. */
function checkVisible(value: unknown, pointer: string): void {
  const hidden = typeof value === 'string' ? hiddenCharacter(value) : undefined;
  if (hidden !== undefined) throw invalidField(pointer, `holds ${hidden}: ${NOT_VISIBLE}`);
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    checkVisible(inner, `${pointer}/${pointerStep(name)}`);
  }
}

/**
 * Unknown JSON becomes what the validator says it is, or a 400 whose `param` is the JSON pointer of the first fault (empty: the
 * whole body) and whose message names the place and, for a single value, its text. What models read may hold any character.
 * @param quotable as for `checkShape`
 */
export function checkContent<T>(
  validator: Validator<T>,
  body: unknown,
  explanations: readonly Explanation[] = [],
  quotable = /^/,
): T {
  if (validator(body)) return body;
  const fault = validator.errors?.[0];
  const pointer = pointerOf(fault);
  const must = missing(fault) ?? explanations.find(({ at }) => at.test(pointer))?.must ?? generalFault(fault);
  const quoted = pointer !== '' && quotable.test(pointer) ? textAt(body, pointer) : '';
  throw invalidField(pointer, must, { quoted, kind: entryOf(KINDS, fault?.keyword ?? '') });
}

const KINDS: Readonly<Record<string, FieldFault['kind']>> = { minProperties: 'empty', additionalProperties: 'unknown' };

/** As `checkContent`, for OpenAI's endpoints: there a field that is not known is 400 `unsupported_parameter`. */
export function checkOpenAiShape<T>(validator: Validator<T>, body: unknown): T {
  if (validator(body)) return body;
  const fault = validator.errors?.[0];
  if (fault?.keyword !== 'additionalProperties') return checkContent(validator, body);
  const pointer = pointerOf(fault);
  throw unsupportedParameter(`${pointer} is not a known field.`, pointer);
}

/** A name as a step of a JSON pointer. */
export const pointerStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1');

/** A missing or unknown property is itself the place of the fault, not the object around it. */
export function pointerOf(fault: ValidationError | undefined): string {
  const { missingProperty, additionalProperty } = fault?.params ?? {};
  const name = missingProperty ?? additionalProperty;
  const parent = fault?.instancePath ?? '';
  return typeof name === 'string' ? `${parent}/${pointerStep(name)}` : parent;
}

function missing(fault: ValidationError | undefined): string | undefined {
  if (fault?.keyword === 'required') return 'is missing';
  return fault?.keyword === 'dependentRequired' ? `is required with ${fault.params.property}` : undefined;
}

function generalFault(fault: ValidationError | undefined): string {
  switch (fault?.keyword) {
    case 'additionalProperties':
      return 'is not a known field';
    case 'minProperties':
      return 'must hold at least one field';
    case 'minItems':
      return 'must hold at least one entry';
    case 'maxItems':
      return `must hold at most ${fault.params.limit} entries`;
    case 'type':
      return `must be of type ${listOf(fault.params.type, ' or ')}`;
    case 'enum':
      return `must be one of ${listOf(fault.params.allowedValues, ', ')}`;
    default:
      return fault?.message ?? 'is not valid';
  }
}

const listOf = (values: unknown, separator: string): string =>
  Array.isArray(values) ? values.map(String).join(separator) : String(values);

/** A single value that stands at the pointer, quoted and shortened, since callers may send anything. */
function textAt(body: unknown, pointer: string): string {
  let value = body;
  for (const step of pointer.slice(1).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return '';
    value = Reflect.get(value, name);
  }
  if (typeof value === 'object' && value !== null) return '';
  const text = JSON.stringify(value);
  return text.length > 100 ? `${text.slice(0, 100)}…` : text;
}
