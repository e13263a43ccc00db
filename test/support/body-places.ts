// Every place of a body that its schema names, so that an attack reaches fields that were added after it was written.
import { isObject, type Json, type JsonObject, readTitledSchemas } from '../../src/lib/schemas.ts';

const SCHEMAS = new Map(readTitledSchemas().map(({ title, schema }) => [title, schema]));

/** A step into a list or an object: 0 is the first entry, `*` any name where the schema lets the caller choose one. */
export type Step = string | 0;

export interface BodyPlace {
  readonly steps: readonly Step[];
  /** A text may stand there. */
  readonly isText: boolean;
}

/** Levels below the body; deeper ones repeat what stands above. */
const MAX_DEPTH = 6;

const VARIANTS = ['allOf', 'anyOf', 'oneOf'];

const typesOf = ({ type }: JsonObject): readonly Json[] => (Array.isArray(type) ? type : [type ?? '']);

function* walk(schema: JsonObject, steps: readonly Step[], open: readonly string[]): Generator<BodyPlace> {
  const { $ref } = schema;
  if (typeof $ref === 'string') {
    const target = SCHEMAS.get($ref);
    if (target !== undefined && !open.includes($ref)) yield* walk(target, steps, [...open, $ref]);
    return;
  }
  if (steps.length > 0) yield { steps, isText: typesOf(schema).includes('string') };
  if (steps.length === MAX_DEPTH) return;
  const { properties, items, additionalProperties, then: conditional } = schema;
  for (const [name, inner] of Object.entries(isObject(properties) ? properties : {})) {
    if (isObject(inner)) yield* walk(inner, [...steps, name], open);
  }
  if (isObject(items)) yield* walk(items, [...steps, 0], open);
  if (isObject(additionalProperties)) yield* walk(additionalProperties, [...steps, '*'], open);
  const variants = VARIANTS.flatMap((keyword) => schema[keyword] ?? []);
  for (const variant of [...variants, conditional ?? null].flat())
    if (isObject(variant)) yield* walk(variant, steps, open);
}

const pointerOf = (steps: readonly Step[]): string => steps.map((step) => `/${step}`).join('');

/** The places of a body, each once, by its schema's title. */
export function bodyPlaces(title: string): BodyPlace[] {
  const schema = SCHEMAS.get(title);
  if (schema === undefined) throw new Error(`No schema has the title ${title}.`);
  const places = new Map<string, BodyPlace>();
  for (const place of walk(schema, [], [title])) {
    const pointer = pointerOf(place.steps);
    places.set(pointer, { ...place, isText: place.isText || places.get(pointer)?.isText === true });
  }
  return [...places.values()];
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Sets an own property, whatever its name. */
function put(holder: object, step: Step, value: unknown): void {
  Object.defineProperty(holder, step, { value, configurable: true, enumerable: true, writable: true });
}

/** A copy of the body with the value at the place; `name` stands where the caller chooses one. */
export function bodyWith(body: object, steps: readonly Step[], value: unknown, name = 'any'): object {
  const copy: object = structuredClone(body);
  let holder = copy;
  for (const [index, step] of steps.entries()) {
    const key = step === '*' ? name : step;
    const next = steps[index + 1];
    if (next === undefined) {
      put(holder, key, value);
      break;
    }
    const inner: unknown = Object.hasOwn(holder, key) ? Reflect.get(holder, key) : undefined;
    const fits = isContainer(inner) && Array.isArray(inner) === (next === 0);
    const into: object = fits ? inner : next === 0 ? [] : {};
    if (!fits) put(holder, key, into);
    holder = into;
  }
  return copy;
}
