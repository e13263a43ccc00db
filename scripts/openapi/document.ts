// The OpenAPI 3.1 document of a listener, made of its operations and of the schemas that they name.
import manifest from '../../package.json' with { type: 'json' };
import { COMMON, type Listener, type Operation } from '../../src/http/operations/operation.ts';
import { type Json, type JsonObject, mapSubschemas, type TitledSchema } from '../schema-set.ts';

/** What is no contract of ours in detail. */
const OWN_SCHEMAS: Readonly<Record<string, JsonObject>> = {
  Health: { type: 'object', required: ['status'], properties: { status: { type: 'string', const: 'ok' } } },
  Readiness: {
    type: 'object',
    required: ['status'],
    properties: {
      status: { type: 'string', enum: ['ready', 'not_ready'] },
      reason: { type: 'string' },
      policy: {
        type: 'object',
        required: ['digest', 'revision', 'activatedAt'],
        properties: {
          digest: { type: 'string' },
          revision: { type: ['string', 'null'] },
          activatedAt: { type: 'string', format: 'date-time' },
          refused: { type: 'string' },
        },
      },
    },
  },
  OpenApiDocument: { type: 'object', additionalProperties: true },
};

const ERRORS: Readonly<Record<number, string>> = {
  400: 'The request is wrong: `invalid_json`, `invalid_request` (`param` is the JSON pointer of the first fault).',
  401: 'No key, a key that is not valid (any more), or one that has reached a limit.',
  402: "The provider asks for payment on the customer's own key: `billing_error`.",
  403: 'Refused by policy or role: `permission_denied`.',
  404: 'There is no such thing: `model_not_found`, `not_found`.',
  413: 'The body is too large.',
  415: 'The body is no `application/json`, or is encoded.',
  429: 'Too many requests, `rate_limit_exceeded`, or no room left by open reservations, `budget_reserved`; with `retry-after`.',
  502: 'Every attempt failed: `upstream_error`.',
  503: '`overloaded`, or the policy cannot be evaluated: `policy_unavailable`.',
  504: 'The last attempt, or the analysis, took too long.',
};

const PARTS: Readonly<Record<string, string>> = {
  id: 'Its id.',
  ruleId: "The rule's id.",
  member: 'Membership id, or e-mail.',
};

const SECURITY: Readonly<Record<NonNullable<Operation['key']>, readonly JsonObject[]>> = {
  gateway: [{ gatewayKey: [] }],
  optional: [{ gatewayKey: [] }, {}],
  master: [{ masterKey: [] }],
  metrics: [{ metricsToken: [] }, {}],
};

const SCHEMES: Readonly<Record<string, JsonObject>> = {
  gatewayKey: {
    type: 'http',
    scheme: 'bearer',
    description: 'A gateway key, `pcl_…`; also as the header `x-api-key`.',
  },
  masterKey: { type: 'http', scheme: 'bearer', description: 'A master key, `pclm_…`; also as the header `x-api-key`.' },
  metricsToken: { type: 'http', scheme: 'bearer', description: '`METRICS_TOKEN`; not needed from loopback.' },
};

const reference = (title: string): JsonObject => ({ $ref: `#/components/schemas/${title}` });

/** Collects the schemas that a document needs, with references as OpenAPI writes them. */
class Components {
  readonly #all: ReadonlyMap<string, JsonObject>;
  readonly used = new Map<string, JsonObject>();

  constructor(schemas: readonly TitledSchema[]) {
    this.#all = new Map([
      ...Object.entries(OWN_SCHEMAS),
      ...schemas.map(({ title, schema }) => [title, schema] as const),
    ]);
  }

  find(title: string): JsonObject {
    const schema = this.#all.get(title);
    if (schema === undefined) throw new Error(`no schema has the title ${title}`);
    return schema;
  }

  refer(title: string): JsonObject {
    if (!this.used.has(title)) {
      this.used.set(title, {});
      this.used.set(title, this.rewrite(this.find(title)));
    }
    return reference(title);
  }

  rewrite(schema: JsonObject): JsonObject {
    const { $ref, ...rest } = mapSubschemas(schema, (subschema) => this.rewrite(subschema));
    return typeof $ref === 'string' ? { ...rest, ...this.refer($ref) } : rest;
  }
}

const content = (media: Readonly<Record<string, string>>, components: Components): JsonObject =>
  Object.fromEntries(
    Object.entries(media).map(([type, title]) => [
      type,
      { schema: title === 'text' ? { type: 'string' } : components.refer(title) },
    ]),
  );

function queryOf({ query = {}, querySchema }: Operation, components: Components): JsonObject[] {
  const named = Object.entries(query).map(([name, { description, type }]) => ({
    name,
    in: 'query',
    description,
    schema: { type },
  }));
  const { properties = {} } = querySchema === undefined ? {} : components.find(querySchema.title);
  const bySchema = Object.entries(properties ?? {}).map(([name, schema]: [string, Json]) => ({
    name,
    in: 'query',
    schema: typeof schema === 'object' && schema !== null && !Array.isArray(schema) ? components.rewrite(schema) : {},
  }));
  return [...named, ...bySchema];
}

function parametersOf(operation: Operation, components: Components): JsonObject[] {
  const { path, headers = {} } = operation;
  const parts = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    description: PARTS[name] ?? '',
    schema: { type: 'string' },
  }));
  const named = Object.entries(headers).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    schema: { type: 'string' },
  }));
  return [...parts, ...queryOf(operation, components), ...named];
}

function operationObject(operation: Operation, components: Components): JsonObject {
  const { id, tag, summary, description, key, request, answer, errors } = operation;
  const parameters = parametersOf(operation, components);
  const refusals = errors.map((status) => [String(status), { $ref: `#/components/responses/Error${status}` }] as const);
  return {
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: key === undefined ? [] : [...SECURITY[key]],
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(request === undefined
      ? {}
      : { requestBody: { required: true, content: content({ 'application/json': request }, components) } }),
    responses: {
      [String(answer.status)]: { description: answer.description, content: content(answer.content, components) },
      ...Object.fromEntries(refusals),
    },
  };
}

/** @throws Error that names the operation, for a schema that nobody has */
function described(operation: Operation, components: Components): JsonObject {
  try {
    return operationObject(operation, components);
  } catch (cause) {
    throw new Error(`operation ${operation.id} cannot be described`, { cause });
  }
}

/** @throws Error that names the operation, for a schema that nobody has */
export function openApiDocument(listener: Listener, schemas: readonly TitledSchema[]): JsonObject {
  const components = new Components(schemas);
  const paths: Record<string, JsonObject> = {};
  const operations: readonly Operation[] = [...listener.operations, ...COMMON];
  for (const operation of operations) {
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method]: described(operation, components),
    };
  }
  const statuses = [...new Set(operations.flatMap(({ errors }) => errors))].sort();
  const envelope = content({ 'application/json': 'ErrorEnvelope' }, components);
  const responses = statuses.map((status) => [
    `Error${status}`,
    { description: ERRORS[status] ?? '', content: envelope },
  ]);
  const schemes = new Set(
    operations.flatMap(({ key }) => Object.keys(key === undefined ? {} : (SECURITY[key][0] ?? {}))),
  );
  return {
    openapi: '3.1.1',
    info: {
      title: listener.title,
      version: manifest.version,
      description: listener.description,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'Where this document is served.' }],
    tags: Object.entries(listener.tags).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: Object.fromEntries(Object.entries(SCHEMES).filter(([name]) => schemes.has(name))),
      schemas: Object.fromEntries([...components.used].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(responses),
    },
  };
}
