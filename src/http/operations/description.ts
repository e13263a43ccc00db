// Description of a listener, made of its operations and of the schemas that they name: an OpenAPI document for programs, and a
// page for people.
import manifest from '../../../package.json' with { type: 'json' };
import {
  isObject,
  type Json,
  type JsonObject,
  mapSubschemas,
  readTitledSchemas,
  type TitledSchema,
} from '../../lib/schemas.ts';
import { entryOf } from '../../lib/text.ts';
import { gateway } from './gateway-operations.ts';
import { management } from './management-operations.ts';
import { COMMON, type Listener, type Operation } from './operation.ts';

/** Schemas that are not a contract of ours in detail. */
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
    description: entryOf(PARTS, name) ?? '',
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

const LISTENERS = { gateway, management };

/** The OpenAPI 3.1 document of a listener. @throws Error that names the operation, for a schema that nobody has */
export function openApiDocument(name: keyof typeof LISTENERS): JsonObject {
  const listener: Listener = LISTENERS[name];
  const components = new Components(readTitledSchemas());
  const paths = new Map<string, JsonObject>();
  const operations: readonly Operation[] = [...listener.operations, ...COMMON];
  for (const operation of operations) {
    const { path, method } = operation;
    paths.set(path, { ...paths.get(path), [method]: described(operation, components) });
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
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: Object.fromEntries(Object.entries(SCHEMES).filter(([name]) => schemes.has(name))),
      schemas: Object.fromEntries([...components.used].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(responses),
    },
  };
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Text with `code`. */
const prose = (text: Json | undefined): string =>
  typeof text === 'string' ? escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>') : '';

const record = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
const titleOf = ($ref: Json | undefined): string => (typeof $ref === 'string' ? ($ref.split('/').at(-1) ?? '') : '');
const link = (title: string): string => `<a href="#schema-${title}">${title}</a>`;

/** Type of a value, in a few words. */
function typeText(schema: JsonObject): string {
  if (schema.$ref !== undefined) return link(titleOf(schema.$ref));
  if (schema.const !== undefined) return `<code>${escaped(JSON.stringify(schema.const))}</code>`;
  if (Array.isArray(schema.enum))
    return schema.enum.map((each) => `<code>${escaped(JSON.stringify(each))}</code>`).join(' ');
  const alternatives = list(schema.anyOf ?? schema.oneOf);
  if (alternatives.length > 0) return alternatives.map((each) => typeText(record(each))).join(' or ');
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => typeof type === 'string');
  const items = isObject(schema.items) ? ` of ${typeText(schema.items)}` : '';
  return types.map((type) => (type === 'array' ? `array${items}` : type)).join(' or ');
}

const row = (cells: readonly string[]): string => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return '';
  const cells = head.map((cell) => `<th>${cell}</th>`).join('');
  return `<table><thead><tr>${cells}</tr></thead><tbody>${rows.map(row).join('')}</tbody></table>`;
}

/** The fields of an object, those of objects in it behind a dot. */
function fields(schema: JsonObject, prefix = ''): string[][] {
  const required = new Set(list(schema.required));
  return Object.entries(record(schema.properties)).flatMap(([name, value]) => {
    const field = record(value);
    const own = [
      `<code>${escaped(prefix + name)}</code>`,
      typeText(field),
      required.has(name) ? 'required' : '',
      prose(field.description),
    ];
    return [own, ...fields(field, `${prefix}${name}.`)];
  });
}

function parametersTable(operation: JsonObject): string {
  const rows = list(operation.parameters).map((each) => {
    const { name, in: place, description, schema } = record(each);
    return [
      `<code>${prose(name)}</code>`,
      prose(place),
      typeText(record(schema)),
      prose(description ?? record(schema).description),
    ];
  });
  return table(['Parameter', 'In', 'Type', 'Meaning'], rows);
}

const contentText = (content: Json | undefined): string =>
  Object.entries(record(content))
    .map(([media, value]) => `<code>${escaped(media)}</code> ${typeText(record(record(value).schema))}`)
    .join('<br>');

function operationSection(method: string, path: string, operation: JsonObject, responses: JsonObject): string {
  const schemes = list(operation.security).flatMap((each) => Object.keys(record(each)));
  const rows = Object.entries(record(operation.responses)).map(([status, value]) => {
    const { $ref } = record(value);
    const response = $ref === undefined ? record(value) : record(entryOf(responses, titleOf($ref)));
    return [status, contentText(response.content), prose(response.description)];
  });
  const body = record(operation.requestBody).content;
  return `<section id="${prose(operation.operationId)}">
<h3><span class="${method}">${method.toUpperCase()}</span> <code>${escaped(path)}</code></h3>
<p>${prose(operation.summary)}. ${prose(operation.description)}${schemes.length === 0 ? '' : ` With: ${schemes.join(', ')}.`}</p>
${parametersTable(operation)}
${body === undefined ? '' : `<p>Body: ${contentText(body)}</p>`}
${table(['Status', 'Answer', 'Meaning'], rows)}
</section>`;
}

const STYLE = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem;color:#1b1f24;background:#fff}
code{font:13px ui-monospace,monospace;background:#f2f4f6;padding:1px 4px;border-radius:3px}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1rem}td,th{border-bottom:1px solid #dde1e6;padding:4px 8px;text-align:left;vertical-align:top}
h2{margin-top:2.5rem;border-bottom:2px solid #dde1e6}h3 span{font:700 12px ui-monospace,monospace;padding:2px 6px;border-radius:3px;color:#fff;background:#57606a}
.post{background:#1a7f37!important}.get{background:#0969da!important}.patch{background:#9a6700!important}.delete{background:#cf222e!important}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}code{background:#21262d}td,th,h2{border-color:#30363d}a{color:#58a6ff}}`;

/** The page of a document. It needs no script, no font and no other file. */
export function referencePage(document: JsonObject): string {
  const info = record(document.info);
  const components = record(document.components);
  const responses = record(components.responses);
  const operations = Object.entries(record(document.paths)).flatMap(([path, item]) =>
    Object.entries(record(item)).map(([method, operation]) => ({ method, path, operation: record(operation) })),
  );
  const sections = list(document.tags).map((each) => {
    const { name, description } = record(each);
    const own = operations.filter(({ operation }) => list(operation.tags).includes(name ?? null));
    const parts = own.map(({ method, path, operation }) => operationSection(method, path, operation, responses));
    return `<h2>${prose(name)}</h2><p>${prose(description)}</p>${parts.join('\n')}`;
  });
  const schemas = Object.entries(record(components.schemas)).map(([title, value]) => {
    const schema = record(value);
    const type = schema.properties === undefined ? `<p>${typeText(schema)}</p>` : '';
    const rows = table(['Field', 'Type', '', 'Meaning'], fields(schema));
    return `<section id="schema-${title}"><h3>${title}</h3><p>${prose(schema.description)}</p>${type}${rows}</section>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>${prose(info.title)}</title><style>${STYLE}</style></head><body>
<h1>${prose(info.title)} ${prose(info.version)}</h1><p>${prose(info.description)} The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>
${sections.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body></html>
`;
}
