// A page for people, made of an OpenAPI document. It needs no script, no font and no other file.
import { isObject, type Json, type JsonObject } from '../schema-set.ts';

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** Text with `code`. */
const prose = (text: Json | undefined): string =>
  typeof text === 'string' ? escaped(text).replaceAll(/`([^`]+)`/g, '<code>$1</code>') : '';

const record = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : []);
const titleOf = ($ref: Json | undefined): string => (typeof $ref === 'string' ? ($ref.split('/').at(-1) ?? '') : '');
const link = (title: string): string => `<a href="#schema-${title}">${title}</a>`;

/** What a value is, in a few words. */
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
    const response = $ref === undefined ? record(value) : record(responses[titleOf($ref)]);
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

/** The whole page. */
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
