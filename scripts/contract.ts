// The contract of the HTTP API in short, so that a change of it shows in review: digests of the OpenAPI documents, and the first fault
// of some wrong bodies and queries of each operation.
import { createHash } from 'node:crypto';
import { openApiDocument } from '../src/http/operations/description.ts';
import { gateway } from '../src/http/operations/gateway-operations.ts';
import { management } from '../src/http/operations/management-operations.ts';
import type { Operation } from '../src/http/operations/operation.ts';
import { isObject, type Json, type JsonObject, readTitledSchemas, type Title, validator } from '../src/lib/schemas.ts';
import { format } from './format.ts';

const SCHEMAS = new Map(readTitledSchemas().map(({ title, schema }) => [title, schema]));
const SAMPLES: Readonly<Record<string, Json>> = { string: 'x', integer: 1, number: 1, boolean: true, object: {} };
const WRONG: readonly Json[] = [[{}], 'x'.repeat(5000), -1];

/** The least valid bodies of schemas whose conditions go beyond required fields. */
const LEAST: Readonly<Record<string, JsonObject>> = {
  ChatRequest: { model: 'x', messages: [{ role: 'user', content: 'x' }] },
  RuleCreateRequest: { ruleType: 'deny_models', ruleValue: { models: ['x'] } },
};

function faultOf(title: Title, body: Json): string {
  const validate = validator(title);
  if (validate(body)) return 'valid';
  const { instancePath = '', message = '' } = validate.errors?.[0] ?? {};
  return `${instancePath} ${message}`.trim();
}

/** A value of the schema, but for its pattern and limits. */
function sampleOf({ $ref, type, const: constant, enum: values, items }: JsonObject): Json {
  if (constant !== undefined) return constant;
  if (typeof $ref === 'string') return sampleOf(SCHEMAS.get($ref) ?? {});
  if (Array.isArray(values)) return values[0] ?? null;
  if (type === 'array') return isObject(items) ? [sampleOf(items)] : [];
  const [first] = Array.isArray(type) ? type : [type];
  return (typeof first === 'string' ? SAMPLES[first] : undefined) ?? null;
}

function faultsOf(title: Title, { properties, required }: JsonObject): JsonObject {
  const fields = Object.entries(isObject(properties) ? properties : {});
  const needed = fields.filter(([name]) => Array.isArray(required) && required.includes(name));
  const samples = needed.map(([name, field]): [string, Json] => [name, isObject(field) ? sampleOf(field) : null]);
  const least = LEAST[title] ?? Object.fromEntries(samples);
  const wrong = fields.map(([name]): [string, Json] => [
    name,
    WRONG.map((value) => faultOf(title, { ...least, [name]: value })).join(' | '),
  ]);
  return {
    '': [{}, [], { ...least, unknown: 1 }].map((body) => faultOf(title, body)).join(' | '),
    ...Object.fromEntries(wrong),
  };
}

/** The file as `npm run generate` writes it. */
export function contract(): string {
  const digestOf = (document: JsonObject): string =>
    createHash('sha256').update(JSON.stringify(document)).digest('hex');
  const documents = {
    gateway: digestOf(openApiDocument('gateway')),
    management: digestOf(openApiDocument('management')),
  };
  const operations: readonly Operation[] = [...gateway.operations, ...management.operations];
  const named = new Set(operations.flatMap(({ request, querySchema }) => [request, querySchema?.title]));
  const isNamed = (title: string): title is Title => named.has(title);
  const faults = [...SCHEMAS].flatMap(([title, schema]) => (isNamed(title) ? [[title, faultsOf(title, schema)]] : []));
  const whole = { documents, faults: Object.fromEntries(faults) };
  return format('contract.json', JSON.stringify(whole));
}
