import { isRecord } from '../wire/json.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that structured outputs take as they are; those that hold schemas are treated on their own. */
const KEPT: ReadonlySet<string> = new Set([
  '$ref',
  'type',
  'title',
  'description',
  'enum',
  'const',
  'default',
  'required',
  'pattern',
]);

const FORMATS: ReadonlySet<unknown> = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
]);

/** Without a meaning for what the model writes. */
const DROPPED: ReadonlySet<string> = new Set(['$schema', '$id', '$comment', 'examples', 'additionalProperties']);

/**
 * A JSON Schema within the subset that the API's structured outputs take; anything else in one is a 400. Objects are closed, as
 * the API demands, and a constraint that it cannot enforce goes into the description for the model.
 */
export function structuredSchema(schema: Schema): Schema {
  const keeps: [string, unknown][] = [];
  const tells: [string, unknown][] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const nested = nestedSchemas(keyword, value);
    if (nested !== undefined) keeps.push([keyword === 'oneOf' ? 'anyOf' : keyword, nested]);
    else if (isTaken(keyword, value)) keeps.push([keyword, value]);
    else if (!DROPPED.has(keyword)) tells.push([keyword, value]);
  }
  const kept: Record<string, unknown> = Object.fromEntries(keeps);
  if (describesObject(schema)) kept.additionalProperties = false;
  if (tells.length > 0) {
    const text = `Must also satisfy: ${JSON.stringify(Object.fromEntries(tells))}`;
    kept.description = typeof kept.description === 'string' ? `${kept.description}\n${text}` : text;
  }
  return kept;
}

function isTaken(keyword: string, value: unknown): boolean {
  if (keyword === 'format') return FORMATS.has(value);
  if (keyword === 'minItems') return value === 0 || value === 1;
  return KEPT.has(keyword);
}

/** The value of a keyword that holds schemas, treated in turn; undefined for any other keyword. */
function nestedSchemas(keyword: string, value: unknown): unknown {
  switch (keyword) {
    case 'properties':
    case '$defs':
    case 'definitions':
      return isRecord(value) ? mapValues(value) : undefined;
    case 'items':
      return isRecord(value) ? structuredSchema(value) : undefined;
    case 'anyOf':
    case 'oneOf':
    case 'allOf':
      return Array.isArray(value) ? value.map(structured) : undefined;
    default:
      return undefined;
  }
}

const structured = (value: unknown): unknown => (isRecord(value) ? structuredSchema(value) : value);

/** A property may be named `__proto__`: entries keep it an own one. */
const mapValues = (schemas: Schema): unknown =>
  Object.fromEntries(Object.entries(schemas).map(([name, value]) => [name, structured(value)]));

function describesObject({ type, properties }: Schema): boolean {
  return type === 'object' || (Array.isArray(type) && type.includes('object')) || isRecord(properties);
}
