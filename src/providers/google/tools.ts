import type { ChatRequest, FunctionDefinition, ToolChoice } from '../../generated/types.ts';
import { type Fields, isRecord, record } from '../wire/fields.ts';

function toDeclaration({ name, description, parameters }: FunctionDefinition): Fields {
  const declaration: Record<string, unknown> = { name };
  if (typeof description === 'string') declaration.description = description;
  if (isRecord(parameters) && Object.keys(parameters).length > 0) {
    declaration.parametersJsonSchema = toGoogleSchema({ type: 'object', ...parameters });
  }
  return declaration;
}

const only = (mode: string, allowedFunctionNames: readonly string[]): Fields => ({ mode, allowedFunctionNames });

/** The functions that `allowed_tools` lists. */
function allowedNames(allowed: Fields): string[] {
  const tools = Array.isArray(allowed.tools) ? allowed.tools : [];
  return tools.flatMap((tool: unknown) => {
    const { name } = record(record(tool).function);
    return typeof name === 'string' ? [name] : [];
  });
}

/** `VALIDATED` is the mode that leaves the model free to call none of the functions it is limited to. */
function callingConfig(choice: NonNullable<ToolChoice>): Fields | undefined {
  if (choice === 'auto') return { mode: 'AUTO' };
  if (choice === 'none') return { mode: 'NONE' };
  if (choice === 'required') return { mode: 'ANY' };
  if (typeof choice === 'string') return undefined;
  if (choice.type === 'function' && choice.function !== undefined) return only('ANY', [choice.function.name]);
  if (choice.type === 'allowed_tools') {
    const allowed = record(choice.allowed_tools);
    return only(allowed.mode === 'required' ? 'ANY' : 'VALIDATED', allowedNames(allowed));
  }
  return undefined;
}

/** `tools` and `toolConfig`; `web_search_options` asks for Google's own search. */
export function toToolFields(request: ChatRequest): Fields {
  const functionDeclarations = (request.tools ?? []).flatMap((tool) =>
    tool.function === undefined ? [] : [toDeclaration(tool.function)],
  );
  const tools: Fields[] = functionDeclarations.length === 0 ? [] : [{ functionDeclarations }];
  if (isRecord(request.web_search_options)) tools.push({ googleSearch: {} });
  if (tools.length === 0) return {};
  const { tool_choice: choice } = request;
  const config =
    choice === null || choice === undefined || functionDeclarations.length === 0 ? undefined : callingConfig(choice);
  return config === undefined ? { tools } : { tools, toolConfig: { functionCallingConfig: config } };
}

type Schema = Readonly<Record<string, unknown>>;

/** Keywords whose value is a schema; a map of schemas; a list of schemas. Everything else is data and stays as it is. */
const NESTED: ReadonlySet<string> = new Set(['items', 'additionalProperties', 'not', 'if', 'then', 'else', 'contains']);
const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', '$defs', 'definitions']);
const LISTS: ReadonlySet<string> = new Set(['anyOf', 'oneOf', 'allOf', 'prefixItems']);

const OLD_REF = '#/definitions/';

/**
 * A JSON Schema as Google's `parametersJsonSchema` and `responseJsonSchema` read it. They document which keywords they know:
 * `$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf
 * properties additionalProperties required`. What says the same in other words is put into these: `const` becomes `enum` where that is known,
 * `definitions` `$defs`, a lone `allOf` `anyOf`, and a `$ref` that has neighbours, which is refused there, moves into an
 * `anyOf`. `$schema` goes; other keywords go along. Depth is bounded by the request's.
 */
export function toGoogleSchema(schema: Schema): Schema {
  const result: Record<string, unknown> = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$schema') continue;
    if (keyword === 'const' && isEnumerable(value)) result.enum = [value];
    else if (keyword === '$ref') result.$ref = toRef(value);
    else if (keyword === 'allOf' && isLone(value, schema)) result.anyOf = value.map(toSubschema);
    else setOwn(result, keyword === 'definitions' ? '$defs' : keyword, toValue(keyword, value));
  }
  return withoutNeighbours(result);
}

const isLone = (value: unknown, schema: Schema): value is unknown[] =>
  Array.isArray(value) && value.length === 1 && schema.anyOf === undefined;

/** Types that `enum` is documented for. */
const isEnumerable = (value: unknown): boolean => typeof value === 'string' || typeof value === 'number';

const toRef = (ref: unknown): unknown =>
  typeof ref === 'string' && ref.startsWith(OLD_REF) ? `#/$defs/${ref.slice(OLD_REF.length)}` : ref;

const toSubschema = (value: unknown): unknown => (isRecord(value) ? toGoogleSchema(value) : value);

function toValue(keyword: string, value: unknown): unknown {
  if (NESTED.has(keyword)) return toSubschema(value);
  if (LISTS.has(keyword) && Array.isArray(value)) return value.map(toSubschema);
  if (!MAPS.has(keyword) || !isRecord(value)) return value;
  const map: Record<string, unknown> = {};
  for (const [name, subschema] of Object.entries(value)) setOwn(map, name, toSubschema(subschema));
  return map;
}

/** A property may be named `__proto__`: it is data, never a prototype. */
function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true });
}

function withoutNeighbours(schema: Schema): Schema {
  const { $ref, ...rest } = schema;
  if ($ref === undefined || rest.anyOf !== undefined || Object.keys(rest).every((name) => name.startsWith('$'))) {
    return schema;
  }
  return { ...rest, anyOf: [{ $ref }] };
}
